/**
 * What to do about a fault. A command in it is a separate part: how to call it, and whether to use backticks, depends
 * on the view (commands/views/remedy.ts). A remedy without commands is a string.
 */
export type Remedy = string | readonly RemedyPart[]
export type RemedyPart = string | Command

/** `coppice`: one of ours, without the program's name. `shell`: any other, whole and quoted. */
export type Command = { readonly of: 'coppice' | 'shell'; readonly command: string }

export const coppice = (command: string): Command => ({ of: 'coppice', command })
export const shell = (command: string): Command => ({ of: 'shell', command })

/** remedy`run ${coppice('worktree list')} for a list` */
export const remedy = (
  texts: TemplateStringsArray,
  ...values: readonly (string | number | Command | Remedy)[]
): Remedy => {
  const parts: RemedyPart[] = []
  const add = (part: RemedyPart): void => {
    const last = parts.at(-1)
    if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part
    else if (part !== '') parts.push(part)
  }
  texts.forEach((text, i) => {
    add(text)
    const value = values[i]
    if (value === undefined) return
    for (const part of typeof value === 'object' && 'length' in value ? value : [value]) {
      add(typeof part === 'object' ? part : String(part))
    }
  })
  return parts
}
