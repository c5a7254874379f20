/** A key, or text that was typed or pasted. */
export type Key = { readonly name: KeyName } | { readonly text: string; readonly pasted?: true }

export type KeyName =
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'page-up'
  | 'page-down'
  | 'home'
  | 'end'
  | 'enter'
  | 'escape'
  | 'backspace'
  | 'delete'
  | 'delete-word'
  | 'delete-line'
  | 'interrupt'
  | 'end-of-input'
  | 'suspend'
  | 'redraw'
  /** A sequence that means nothing here. */
  | 'unknown'

export type ParsedKeys = {
  readonly keys: readonly Key[]
  /** The beginning of a sequence whose end hasn't arrived yet. */
  readonly rest: string
}

/** `isAll`: nothing more is coming soon, so an escape is the key of that name. */
export const parseKeys = (input: string, { isAll = false }: { readonly isAll?: boolean } = {}): ParsedKeys => {
  const keys: Key[] = []
  for (let rest = input; rest !== '';) {
    if (rest.startsWith(PASTE_BEGINS)) {
      const end = rest.indexOf(PASTE_ENDS)
      if (end < 0 && !isAll && rest.length < MOST_PASTED) return { keys, rest }
      keys.push({ text: rest.slice(PASTE_BEGINS.length, end < 0 ? undefined : end), pasted: true })
      rest = end < 0 ? '' : rest.slice(end + PASTE_ENDS.length)
      continue
    }
    if (!isAll && INCOMPLETE.test(rest)) return { keys, rest }
    const [sequence = rest.charAt(0)] = SEQUENCE.exec(rest) ?? []
    keys.push(keyOf(sequence))
    rest = rest.slice(sequence.length)
  }
  return { keys, rest: '' }
}

const PASTE_BEGINS = '\u001b[200~'
const PASTE_ENDS = '\u001b[201~'
const MOST_PASTED = 200_000

/** A control sequence, one of a keypad, a key with Alt, or one character. */
// eslint-disable-next-line no-control-regex
const SEQUENCE = /^(?:\u001b\[[0-9;?<]*[ -/]*[@-~]|\u001bO[@-~]|\u001b[^\u001b[O]|[^])/u
// eslint-disable-next-line no-control-regex
const INCOMPLETE = /^\u001b(?:\[[0-9;?<]*|O)?$/

const keyOf = (sequence: string): Key => {
  const name = names[sequence]
  if (name !== undefined) return { name }
  return /^[^\p{Cc}]/u.test(sequence) ? { text: sequence } : { name: 'unknown' }
}

const names: Readonly<Record<string, KeyName>> = {
  '\u001b[A': 'up',
  '\u001b[B': 'down',
  '\u001b[C': 'right',
  '\u001b[D': 'left',
  '\u001bOA': 'up',
  '\u001bOB': 'down',
  '\u001bOC': 'right',
  '\u001bOD': 'left',
  '\u001b[5~': 'page-up',
  '\u001b[6~': 'page-down',
  '\u001b[H': 'home',
  '\u001b[F': 'end',
  '\u001bOH': 'home',
  '\u001bOF': 'end',
  '\u001b[1~': 'home',
  '\u001b[4~': 'end',
  '\u001b[7~': 'home',
  '\u001b[8~': 'end',
  '\u001b[3~': 'delete',
  '\r': 'enter',
  '\n': 'enter',
  '\u001b': 'escape',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0001': 'home',
  '\u0005': 'end',
  '\u0002': 'page-up',
  '\u0006': 'page-down',
  '\u0010': 'up',
  '\u000e': 'down',
  '\u0017': 'delete-word',
  '\u0015': 'delete-line',
  '\u0003': 'interrupt',
  '\u0004': 'end-of-input',
  '\u001a': 'suspend',
  '\u000c': 'redraw',
}
