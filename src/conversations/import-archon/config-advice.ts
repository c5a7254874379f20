import { join } from 'node:path'
import { relativeGlob } from '../../domain/config/rules.ts'
import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import type { Planning } from './planning.ts'
import { hasControl } from './report.ts'

/** A repository's `.archon/config.yaml`. */
export type ArchonRepoConfig = {
  readonly file: string
  readonly baseBranch: string | undefined
  readonly assistant: string | undefined
  readonly copyFiles: readonly string[]
  readonly initSubmodules: boolean
  readonly commandsFolder: string | undefined
  /** Other keys, as `section.key`. */
  readonly others: readonly string[]
  /** Why it couldn't be read. */
  readonly problem?: string
}

const name = '.archon/config.yaml'

/** From the checkout, where Archon reads it. Undefined if there is none. */
export const readArchonConfig = async ({ checkoutPath }: Codebase): Promise<ArchonRepoConfig | undefined> => {
  if (checkoutPath === undefined) return undefined
  const found = await readSections(join(checkoutPath, name))
  if (found === undefined) return undefined
  const { values, problem } = found
  const copyFiles = values.get('worktree.copyFiles')
  const used = ['assistant', 'worktree.baseBranch', 'worktree.copyFiles', 'worktree.initSubmodules', 'commands.folder']
  return {
    file: name,
    baseBranch: textOf(values.get('worktree.baseBranch')),
    assistant: textOf(values.get('assistant')),
    copyFiles: Array.isArray(copyFiles) ? copyFiles.filter((one) => typeof one === 'string').slice(0, 100) : [],
    initSubmodules: values.get('worktree.initSubmodules') !== false,
    commandsFolder: textOf(values.get('commands.folder')),
    others: [...values.keys()].filter((key) => !used.includes(key)),
    ...(problem !== undefined && { problem }),
  }
}

/** What must be committed to the repository's own `.coppice/config.yaml`: Coppice reads it from the base commit. */
export const adviseOnConfig = ({ advice }: Planning, codebase: Codebase, config: ArchonRepoConfig): void => {
  const { file, problem, copyFiles, initSubmodules, others } = config
  if (problem !== undefined) {
    advice.push({ kind: 'unreadable-config', file: `${codebase.name}: ${file}`, why: problem })
    return
  }
  const paths = copyFiles.map((path) => path.trim().replace(/^\.\//, '').replace(/\/$/, ''))
  // `.archon` itself was copied by default; `from -> to` renames.
  const copy = paths.filter(
    (path) => path !== '.archon' && !path.includes('->') && relativeGlob.read(path) !== undefined,
  )
  const unused = paths.filter((path) => path !== '.archon' && !copy.includes(path))
  const yaml = [
    ...(copy.length === 0 ? [] : [`  copy: [${copy.map((path) => JSON.stringify(path)).join(', ')}]`]),
    ...(initSubmodules ? [] : ['  submodules: false']),
  ]
  const left = [...others, ...unused.map((path) => `worktree.copyFiles ${JSON.stringify(path)}`)]
  if (yaml.length === 0 && left.length === 0) return
  const lines = yaml.length === 0 ? [] : ['worktree:', ...yaml]
  advice.push({ kind: 'repository-config', codebase: codebase.name, file, yaml: lines, unused: left })
}

/** Archon's own `config.yaml`, in its home. */
export const adviseOnHome = async ({ advice, roots, context: { settings } }: Planning): Promise<void> => {
  for (const home of roots.homes) {
    const file = join(home, 'config.yaml')
    const found = await readSections(file)
    if (found === undefined) continue
    const { values, problem } = found
    if (problem !== undefined) advice.push({ kind: 'unreadable-config', file, why: problem })
    const agent = textOf(values.get('defaultAssistant'))
    const conversations = values.get('concurrency.maxConversations')
    const yaml = [
      ...(agent === undefined || agent === settings.agentDefault
        ? []
        : ['agent:', `  default: ${JSON.stringify(agent)}`]),
      ...(typeof conversations !== 'number' || conversations === settings.concurrentConversations
        ? []
        : ['limits:', `  concurrentConversations: ${conversations}`]),
    ]
    const unused = [...values.keys()].filter(
      (key) => !['defaultAssistant', 'concurrency.maxConversations'].includes(key),
    )
    if (yaml.length + unused.length > 0) advice.push({ kind: 'home-config', file, yaml, unused })
  }
}

type Sections = { readonly values: ReadonlyMap<string, unknown>; readonly problem?: string }

/** Parsing YAML can take quadratic time. */
const maxBytes = 64 * 1024

/** Two levels of keys. Undefined if there is no such file. */
const readSections = async (file: string): Promise<Sections | undefined> => {
  try {
    const text = await readUntrustedText(file, { maxBytes, followLink: true })
    if (text === undefined) return undefined
    const { parseDocument } = await import('../../domain/yaml.ts')
    const document = parseDocument(text, { prettyErrors: false })
    if (document.errors[0] !== undefined) throw document.errors[0]
    const plain: unknown = document.toJS({ maxAliasCount: 50 })
    return { values: new Map(entriesOf(plain).flatMap(([key, value]) => sectionOf(key, value))) }
  } catch (error) {
    return { values: new Map(), problem: toAppError(error).message }
  }
}

const sectionOf = (key: string, value: unknown): [string, unknown][] => {
  const inner = entriesOf(value)
  return inner.length === 0 ? [[key, value]] : inner.map(([name, one]) => [`${key}.${name}`, one])
}

const entriesOf = (value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value).filter(([key, one]) => one !== null && !hasControl(key) && key.length <= 100)
    : []

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' && value.length <= 200 && !hasControl(value)
    ? value.trim()
    : undefined
