/**
 * Quotes one word for a command line that people paste: a stranger may name a branch `$(reboot)` or a directory
 * `lib\tx`. Characters that may not survive (tabs, line breaks, unusual spaces, chat markup) are written as `$'\011'`.
 * A quoted word never contains a quote, so nothing ends it early, even in shells without `$'…'`: fish refuses the line,
 * and dash finds no such file.
 */
export const shellWord = (text: string): string => {
  if (notUtf8.test(text)) return unknownName
  if (plain.test(text)) return text
  return fragile.test(text) ? `$'${text.replaceAll(escaped, octal)}'` : `'${text}'`
}

/** A command that writes exactly this line to the file. */
export const writeLine = (file: string, line: string): string =>
  `printf '%s\\n' ${shellWord(line)} > ${shellWord(file)}`

/** U+FFFD replaces bytes that aren't UTF-8, but another file's name may really contain it. */
const notUtf8 = /[\ufffd\p{Cs}]/u

/** When pasted, this is a redirection that fails before the command runs. */
const unknownName = '<name-is-not-UTF-8>'

/** zsh expands `=ls` to the path of `ls`. */
const plain = /^(?!=)[\w@%+=:,./-]+$/

/** Markdown turns `\'` and `&#39;` into `'`, and drops `*` and repeated spaces. fish unescapes backslashes in `'…'`. */
const fragile = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\\`'&*<>[\]~|]|(?! )\p{Zs}|^ | $| {2}/u

const escaped = /[^\p{L}\p{M}\p{N}\p{S}\p{P}]|[^\w@%+=:,./\u0080-\u{10ffff}-]/gu

const octal = (char: string): string =>
  [...Buffer.from(char)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
