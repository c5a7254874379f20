/** A format string for git and the parser for its output, made together so they can't drift apart. */
export type RecordFormat<Field extends string> = {
  readonly format: string
  readonly parse: (output: string) => Record<Field, string>[]
}

/**
 * `nul` is the command's escape for NUL (`%00` in for-each-ref, `%x00` in log). Each field ends with one, so the
 * newline that git prints after a record becomes part of the next record's first field.
 */
export const recordFormat = <Field extends string>(
  fields: Readonly<Record<Field, string>>,
  nul: '%00' | '%x00',
): RecordFormat<Field> => {
  const names = Object.keys(fields) as Field[]
  const placeholders = Object.values<string>(fields)
  return {
    format: placeholders.map((placeholder) => `${placeholder}${nul}`).join(''),
    parse: (output) => {
      const values = output.split('\0')
      const records: Record<Field, string>[] = []
      for (let i = 0; i + names.length <= values.length - 1; i += names.length) {
        const record = names.map((name, j) => [name, (values[i + j] ?? '').replace(j === 0 ? /^\n/ : /^$/, '')])
        records.push(Object.fromEntries(record) as Record<Field, string>)
      }
      return records
    },
  }
}
