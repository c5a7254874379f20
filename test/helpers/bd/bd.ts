import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export type BdIssue = {
  id: string
  title: string
  status: string
  priority?: number
  issue_type?: string
  description?: string
  close_reason?: string
  dependencies?: { depends_on_id: string; type: string }[]
  comments?: { author: string; text: string }[]
}

export type BdState = {
  issues: BdIssue[]
  readonly calls: { args: string[]; cwd: string; env: string[] }[]
  /** By verb. `lost`: it does what it is asked and dies before it answers. */
  trouble: Record<string, 'hangs' | 'fails' | 'lost' | undefined>
  /** Answers as from 2.0 on. */
  envelope?: boolean
  /** What `export` writes instead. */
  raw?: string
}

/** A store in `.beads` of this checkout, or elsewhere with a redirect to it, and the program for it. */
export type Bd = {
  /** A directory to put on PATH. */
  readonly bin: string
  read(): BdState
  write(change: Partial<BdState>): void
  issue(id: string): BdIssue
  /** As somebody would with bd itself. */
  set(id: string, change: Partial<BdIssue>): void
}

export const anIssue = (id: string, change: Partial<BdIssue> = {}): BdIssue => ({
  id,
  title: `Title of ${id}`,
  status: 'open',
  priority: 2,
  issue_type: 'task',
  ...change,
})

export const blocks = (...ids: readonly string[]): Pick<BdIssue, 'dependencies'> => ({
  dependencies: ids.map((id) => ({ depends_on_id: id, type: 'blocks' })),
})

/** From a bundle, too. */
const root = process.env['COPPICE_TEST_ROOT'] ?? resolve(import.meta.dirname, '..', '..', '..')

export const installBd = (checkout: string, bin: string, issues: readonly BdIssue[], elsewhere?: string): Bd => {
  const store = elsewhere ?? join(checkout, '.beads')
  const file = join(store, 'state.json')
  mkdirSync(join(checkout, '.beads'), { recursive: true })
  mkdirSync(store, { recursive: true })
  if (elsewhere !== undefined) writeFileSync(join(checkout, '.beads', 'redirect'), `${elsewhere}\n`)
  mkdirSync(bin, { recursive: true })
  const program = join(bin, 'bd')
  const script = join(root, 'test', 'helpers', 'bd', 'program.ts')
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`)
  chmodSync(program, 0o755)
  const read = (): BdState => JSON.parse(readFileSync(file, 'utf8')) as BdState
  const write: Bd['write'] = (change) => writeFileSync(file, JSON.stringify({ ...read(), ...change }))
  if (!existsSync(file)) writeFileSync(file, JSON.stringify({ issues: [...issues], calls: [], trouble: {} }))
  return {
    bin,
    read,
    write,
    issue: (id) => {
      const found = read().issues.find((issue) => issue.id === id)
      if (found === undefined) throw new Error(`there is no ${id}`)
      return found
    },
    set: (id, change) =>
      write({ issues: read().issues.map((issue) => (issue.id === id ? { ...issue, ...change } : issue)) }),
  }
}
