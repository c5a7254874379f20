import { hash } from 'node:crypto'
import { readlinkSync, statSync } from 'node:fs'
import { toAppError } from '../../domain/errors.ts'
import { readUntrustedSync } from '../../process/files/read-untrusted.ts'
import type { Redact } from '../../process/redaction/redact.ts'
import type { Budget } from './git-budget.ts'
import { parseGitConfig, type Setting } from './git-config-syntax.ts'
import { plain } from './git-places.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'

/** A setting as stored between runs: only key and hash if it may hold a password. */
export type Entry = {
  readonly key: string
  readonly shown: string
  readonly print: string
  /** The hash of the value alone, if a branch names a remote. */
  readonly remote?: string
}

/** About a file as a whole: it is a link, or can't be read. */
export type FileNote = Pick<Entry, 'shown' | 'print'>

/** The settings git reads from a file, and notes on the file itself. */
export type ConfigFile = { readonly settings: readonly Setting[]; readonly notes: readonly FileNote[] }

const MOST_CONFIG_BYTES = 1_000_000
/** Longer keys are neither stored nor matched against everyday ones. */
const MOST_KEY_LENGTH = 300
const MOST_SHOWN_LENGTH = 160
/** Enough to recognize a secret that starts in the visible part. */
const MOST_REDACTED_LENGTH = 4_000

/** A file of the repository. A link is reported, but its target is read too, since git follows it. */
export const readOwnConfig = async (file: string, budget: Budget): Promise<ConfigFile> => {
  const stat = lstatIfThere(file)
  if (stat === undefined) return { settings: [], notes: [] }
  if (stat.isFile()) return readConfig(file, { followLink: false }, budget)
  if (!stat.isSymbolicLink()) return { settings: [], notes: [noteOf('not a file')] }
  const { settings, notes } = await readConfig(file, { followLink: true }, budget)
  return { settings, notes: [noteOf(`a link to ${readlinkSync(file)}`), ...notes] }
}

/** If git or we can't read the file, its note changes whenever the file does. */
export const readConfig = async (
  file: string,
  { followLink }: { readonly followLink: boolean },
  budget: Budget,
): Promise<ConfigFile> => {
  budget.takeItems(1)
  let content: Buffer
  try {
    content = readUntrustedSync(file, { maxBytes: MOST_CONFIG_BYTES, followLink }) ?? Buffer.alloc(0)
  } catch (error) {
    return { settings: [], notes: [noteOf(`couldn't be read: ${toAppError(error).message}`, stampsOf(file))] }
  }
  budget.takeBytes(content.length)
  return parsed(content.toString('latin1'), budget)
}

const parsed = async (text: string, budget: Budget): Promise<ConfigFile> => {
  const settings: Setting[] = []
  for (const found of parseGitConfig(text)) {
    await budget.giveWay()
    if ('invalidLine' in found) {
      const { invalidLine, rest } = found
      return { settings, notes: [noteOf(`invalid on line ${invalidLine}, where git stops reading`, rest)] }
    }
    budget.takeItems(1)
    // A long section counts once for every setting in it.
    budget.takeBytes(found.key.length + (found.value?.length ?? 0))
    settings.push(found)
  }
  return { settings, notes: [] }
}

/** `git push -u` and a pull request's checkout record which branches belong together: common, and runs nothing. */
export const entriesOf = async ({ settings }: ConfigFile, redact: Redact, budget: Budget): Promise<Entry[]> => {
  const entries: Entry[] = []
  for (const setting of settings) {
    await budget.giveWay()
    if (!BRANCH_RECORD.test(setting.key)) entries.push(entryOf(setting, redact))
  }
  return entries
}

const BRANCH_RECORD = /^branch\..*\.(?:merge|rebase|description)$/s
export const BRANCH_REMOTE = /^branch\..*\.(?:remote|pushremote)$/s

/** The values of a key, such as `core.hookspath`. */
export const valuesOf = ({ settings }: ConfigFile, isKey: (key: string) => boolean): string[] =>
  settings.flatMap(({ key, value }) => (value !== undefined && isKey(key) ? [decoded(value)] : []))

const entryOf = ({ key, written, value }: Setting, redact: Redact): Entry => ({
  key: key.length > MOST_KEY_LENGTH ? `a key of ${key.length} characters` : redact(decoded(key)),
  // Before truncating: half a secret isn't recognized.
  shown: cut(redact(shown(written.slice(0, MOST_REDACTED_LENGTH), value?.slice(0, MOST_REDACTED_LENGTH)))),
  // Neither has a NUL.
  print: hashOf(value === undefined ? key : `${key}\0${value}`),
  ...(value !== undefined && BRANCH_REMOTE.test(key) && { remote: hashOf(value) }),
})

/** `more`: what else must not change unnoticed. */
const noteOf = (text: string, more = ''): FileNote => ({
  shown: cut(text),
  print: hashOf(`note\0${text}\0${more}`),
})

/** Files only: a device's change by itself. */
const stampsOf = (file: string): string => {
  try {
    const stat = statSync(file)
    return stat.isFile() ? `${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}` : ''
  } catch {
    return ''
  }
}

export const hashOf = (text: string | Uint8Array): string => hash('sha256', text)

/** A header or URL may hold a password: then shows only the key. */
const shown = (key: string, value: string | undefined): string => {
  const name = decoded(key)
  if (value === undefined) return name
  return `${name} = ${MAY_BE_SECRET.test(key) || MAY_BE_SECRET.test(value) ? '…' : decoded(value)}`
}

const MAY_BE_SECRET = /extraheader|password|token|secret|cookie|\.url|insteadof|proxy|:\/\//i

const cut = (text: string): string => plain(text, MOST_SHOWN_LENGTH)

/** The `remote` value of a branch of this remote. */
export const remoteHash = (name: string): string => hashOf(Buffer.from(name).toString('latin1'))

const decoded = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('utf8')
