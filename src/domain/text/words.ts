/** `1 file`, `2 files`. */
export const counted = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`

/** Capitalized, with a full stop. */
export const sentence = (text: string): string => withFullStop(capitalized(text))

export const withFullStop = (text: string): string => {
  const trimmed = text.trim()
  return /[.!?:…>]$/.test(trimmed) || endsWithCommand.test(trimmed) ? trimmed : `${trimmed}.`
}

/** Meant to be pasted: with a full stop, `rm file` would delete another file. */
const endsWithCommand = /: (?:chmod|coppice|git|kill|mv|printf|rm|umount|\/[a-z]+) [^`]*$/

/** Quotations, programs and configuration keys are case-sensitive: leave a sentence that starts with one. */
export const capitalized = (text: string): string =>
  /^(?:`|git |coppice |chmod |\w+\.\w)/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1)
