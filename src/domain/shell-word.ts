/**
 * One word of a command line that can be pasted: a stranger may call a branch `$(reboot)` or a directory `lib\tx`. What
 * may change on the way (tabs, line ends, other blanks than the space, what is markup in a chat) is written as `$'\011'`.
 * No quote is ever inside a quoted word, so nothing ends it early, not even in shells that don't know `$'…'`: fish
 * refuses the line, and dash finds no such file.
 */
export const shellWord = (text: string): string => {
  if (notUtf8.test(text)) return unknownName
  if (plain.test(text)) return text
  return fragile.test(text) ? `$'${text.replaceAll(escaped, octal)}'` : `'${text}'`
}

/** Pasted, the file says exactly this line. */
export const writeLine = (file: string, line: string): string =>
  `printf '%s\\n' ${shellWord(line)} > ${shellWord(file)}`

/** U+FFFD stands for bytes that aren't UTF-8, and a file whose name really has U+FFFD in it may lie beside it. */
const notUtf8 = /[\ufffd\p{Cs}]/u

/** Pasted, it is a redirection that fails before the command runs. */
const unknownName = '<name-is-not-UTF-8>'

/** zsh replaces `=ls` by the path of `ls`. */
const plain = /^(?!=)[\w@%+=:,./-]+$/

/** Markdown makes `'` of `\'` and of `&#39;`, and drops `*` and second spaces. fish reads backslashes inside `'…'`. */
const fragile = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\\`'&*<>[\]~|]|(?! )\p{Zs}|^ | $| {2}/u

const escaped = /[^\p{L}\p{M}\p{N}\p{S}\p{P}]|[^\w@%+=:,./\u0080-\u{10ffff}-]/gu

const octal = (char: string): string =>
  [...Buffer.from(char)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
