/** One setting, as git parses it. Each character is one byte: git doesn't decode text either. */
export type Setting = {
  /** As `git config --list` prints it: section and name in lower case, the subsection as written. */
  readonly key: string
  /** The key with the name as written, for people. */
  readonly written: string
  /** Undefined for a name without `=`, which git treats as true. */
  readonly value: string | undefined
}

/** Git refuses the file from here on. */
export type InvalidRest = { readonly invalidLine: number; readonly rest: string }

/**
 * Parses a configuration file like git (`git_parse_source` in git's config.c). A setting we miss is a program that
 * nobody is warned about, so nothing is guessed: parsing ends at the first line that git would refuse. One pass in
 * linear time: an agent can write any file.
 */
export function* parseGitConfig(text: string): Generator<Setting | InvalidRest> {
  const input = createInput(text)
  let section = ''
  for (;;) {
    const start = input.position()
    const character = input.next()
    if (character === END) return
    if (isBlank(character)) continue
    if (character === '#' || character === ';') {
      input.skipLine()
      continue
    }
    const header = character === '[' ? sectionIn(input) : undefined
    if (header !== undefined && header !== '') {
      section = `${header}.`
      continue
    }
    const setting = LETTER.test(character) ? settingIn(input, section, character) : undefined
    if (setting === undefined) {
      yield { invalidLine: text.slice(0, start).split('\n').length, rest: text.slice(start) }
      return
    }
    yield setting
  }
}

/** Not a character, so never mistaken for the line break that git sees at the end of a file. */
const END = ''
const LETTER = /^[A-Za-z]$/
const NAME_CHARACTER = /^[A-Za-z0-9-]$/
const BYTE_ORDER_MARK = '\u00EF\u00BB\u00BF'

const isBlank = (character: string): boolean =>
  character === ' ' || character === '\t' || character === '\n' || character === '\r'
const endsLine = (character: string): boolean => character === '\n' || character === END

type Input = ReturnType<typeof createInput>

/** Reads single characters; `\r\n` is always one line break. */
const createInput = (text: string) => {
  let at = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0
  return {
    position: () => at,
    next: (): string => {
      if (text[at] === '\r' && text[at + 1] === '\n') at++
      return text[at++] ?? END
    },
    skipLine: (): void => {
      const end = text.indexOf('\n', at)
      at = end === -1 ? text.length : end
    },
  }
}

/** After `[`. Undefined if git refuses it. */
const sectionIn = (input: Input): string | undefined => {
  let name = ''
  for (let character = input.next(); character !== ']'; character = input.next()) {
    if (isBlank(character)) return subsectionIn(input, name, character)
    if (character !== '.' && !NAME_CHARACTER.test(character)) return undefined
    name += character.toLowerCase()
  }
  return name
}

const subsectionIn = (input: Input, section: string, blank: string): string | undefined => {
  let character = blank
  while (isBlank(character) && character !== '\n') character = input.next()
  if (character !== '"') return undefined
  let name = `${section}.`
  for (character = input.next(); character !== '"'; character = input.next()) {
    // A backslash escapes any character.
    if (character === '\\') character = input.next()
    if (endsLine(character)) return undefined
    name += character
  }
  return input.next() === ']' ? name : undefined
}

const settingIn = (input: Input, section: string, first: string): Setting | undefined => {
  let name = first
  let character = input.next()
  for (; NAME_CHARACTER.test(character); character = input.next()) name += character
  while (character === ' ' || character === '\t') character = input.next()
  const key = { key: untilNul(section + name.toLowerCase()), written: untilNul(section + name) }
  if (endsLine(character)) return { ...key, value: undefined }
  const value = character === '=' ? valueIn(input) : undefined
  return value === undefined ? undefined : { ...key, value: untilNul(value) }
}

/** After `=`. Undefined if git refuses it. */
const valueIn = (input: Input): string | undefined => {
  let value = ''
  let isQuoted = false
  /** Without trailing blanks. */
  let length = 0
  for (let character = input.next(); !endsLine(character); character = input.next()) {
    if (isBlank(character) && !isQuoted) {
      if (length > 0) value += character
      continue
    }
    if ((character === '#' || character === ';') && !isQuoted) {
      // A trailing backslash doesn't continue a comment.
      input.skipLine()
      continue
    }
    if (character === '"') isQuoted = !isQuoted
    else if (character === '\\') {
      const meant = ESCAPES[input.next()]
      if (meant === undefined) return undefined
      if (meant !== '') value += meant
    } else value += character
    length = value.length
  }
  return isQuoted ? undefined : value.slice(0, length)
}

/** A backslash at the end of the file counts as before a line break. */
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  b: '\b',
  '"': '"',
  '\\': '\\',
  '\n': '',
  [END]: '',
}

/** As in C, a string ends at its first NUL: `[core "hookspath<NUL>"]` sets `core.hookspath`. */
const untilNul = (text: string): string => {
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}
