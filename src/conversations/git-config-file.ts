import { createHash } from 'node:crypto'
import { toAppError } from '../domain/errors.ts'
import { readUntrustedTextSync } from '../process/read-untrusted.ts'

/** An entry as it is kept between runs: of one that may hold a password only the key and a hash. */
export type Entry = { readonly key: string; readonly shown: string; readonly print: string }

/** One line of a configuration file, with the section that it is in. */
export type ConfigLine = { readonly section: string; readonly text: string }

export const MOST_CONFIG_BYTES = 1_000_000

/** The lines of a file that git would read. One that cannot be read is a line that says why. */
export const configLines = (file: string, { followLink }: { readonly followLink: boolean }): readonly ConfigLine[] => {
  try {
    const options = { maxBytes: MOST_CONFIG_BYTES, followLink }
    return sectioned(readUntrustedTextSync(file, options) ?? '')
  } catch (error) {
    return [{ section: '', text: `it cannot be read: ${toAppError(error).message}` }]
  }
}

/**
 * Line by line, with the section before each: that is enough to say what is new. `git push -u` and a pull request's
 * checkout record which branch belongs to which, and that is everyday as far as it runs nothing.
 */
export const entriesOf = (lines: readonly ConfigLine[]): Entry[] =>
  lines.flatMap(({ section, text }) => {
    if (!section.startsWith('branch.')) return [entryOf(section, text)]
    if (/^(?:merge|rebase|description)\s*=/i.test(text)) return []
    return [entryOf(section, text.replace(/\s*=\s*/, ' = '))]
  })

/** The values of a key, such as `core.hookspath`, as git would understand them. */
export const valuesOf = (lines: readonly ConfigLine[], isKey: (section: string, name: string) => boolean): string[] =>
  lines.flatMap(({ section, text }) => {
    const [, name = '', value = ''] = /^([\w-]+)\s*=\s*(.*)$/s.exec(text) ?? []
    return isKey(section, name.toLowerCase()) ? [unquoted(value)] : []
  })

const sectioned = (text: string): readonly ConfigLine[] => {
  const found: ConfigLine[] = []
  let section = ''
  for (const line of linesOf(text)) {
    let entry = line.trim()
    // Git reads on after a header, so that one line can hold several: the last one counts.
    for (let header = HEADER.exec(entry); header !== null; header = HEADER.exec(entry)) {
      section = sectionName(header[1] ?? '')
      entry = entry.slice(header[0].length).trim()
    }
    if (entry !== '' && !entry.startsWith('#') && !entry.startsWith(';')) found.push({ section, text: entry })
  }
  return found
}

/** A `]` inside of quotes is part of the name. */
const HEADER = /^\[((?:[^\]"]|"(?:[^"\\]|\\.)*")*)\]/

/** A value goes on in the next line after a backslash, so that what looks like a header there is none. */
const linesOf = (text: string): readonly string[] => {
  const lines: string[] = []
  let open = false
  for (const line of text.replace(/^\uFEFF/, '').split(/\r?\n/)) {
    if (open) lines.push(`${lines.pop() ?? ''}\n${line}`)
    else lines.push(line)
    open = /(?:^|[^\\])(?:\\\\)*\\$/.test(line) && !/^\s*[#;]/.test(lines.at(-1) ?? '')
  }
  return lines
}

const sectionName = (text: string): string => {
  const [, name = text, sub] = /^\s*([^\s"]+)\s*(?:"(.*)")?\s*$/s.exec(text) ?? []
  return sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub}`
}

/** Without quotes and comments. A line break behind a backslash is none. */
const unquoted = (value: string): string => {
  let plain = ''
  let quoted = false
  for (const [, escaped, character = ''] of value.matchAll(/\\(.?)|(.)/gs)) {
    if (escaped !== undefined) plain += ESCAPES[escaped] ?? escaped
    else if (character === '"') quoted = !quoted
    else if (!quoted && (character === '#' || character === ';')) break
    else plain += character
  }
  return plain.trim()
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b', '\n': '' }

const entryOf = (section: string, text: string): Entry => {
  const entry = section === '' ? text : `${section}.${text}`
  const [key = entry] = entry.split('=')
  return { key: key.trim(), shown: shown(entry), print: hashOf(entry) }
}

export const hashOf = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** A header or a URL may hold a password: then the key is all that is told. */
const shown = (entry: string): string => {
  const [key = entry] = entry.split('=')
  const plain = /extraheader|password|token|secret|cookie|\.url|insteadof|proxy|:\/\//i.test(entry)
    ? `${key.trim()} = …`
    : entry
  const line = plain.replaceAll('`', "'").replaceAll(/[\p{Cc}]/gu, ' ')
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}
