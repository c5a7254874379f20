/** One word of a command line that can be pasted: a branch may be called `$(reboot)`, a path may hold blanks. */
export const shellWord = (text: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** Pasted, the file says exactly this line. */
export const writeLine = (file: string, line: string): string =>
  `printf '%s\\n' ${shellWord(line)} > ${shellWord(file)}`
