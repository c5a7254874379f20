import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { IsolationHints } from '../../src/domain/hints.ts'
import { toWork, type WorkType } from '../../src/domain/work.ts'
import { refusalText } from '../../src/commands/views/refusal.ts'
import { removeWorktree } from '../../src/commands/worktree-remove.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import type { Holder } from '../../src/domain/holder.ts'
import type { Removed, RemoveOptions, RemoveOutcome } from '../../src/isolation/remove-outcome.ts'
import { resolveIsolation } from '../../src/isolation/resolve/resolve.ts'
import type { Resolution, ResolveRequest } from '../../src/isolation/resolve/resolution.ts'
import type { Conversation } from '../../src/store/store.ts'
import type { RestorePoint } from '../../src/domain/removal/restore-point.ts'
import { writeIn } from '../helpers/repo.ts'
import { inWords, messageIn, noteInWords } from '../helpers/words.ts'
import type { World } from '../helpers/world.ts'
import { describeReason } from '../../src/commands/views/reasons.ts'

/** Short words for what nearly every test here does. */

export type Asked = Partial<Omit<ResolveRequest, 'work' | 'hints'>> & { readonly hints?: IsolationHints }

export const ask = (world: World, type: WorkType, id: string | number, more: Asked = {}): Promise<Resolution> =>
  resolveIsolation(world.context, world.provider, {
    codebase: world.codebase,
    work: toWork(type, String(id)),
    hints: {},
    createdBy: 'test',
    ...more,
  })

/** A conversation as the resolver knows it. */
export const holder = ({ id, environmentId }: Pick<Conversation, 'id' | 'environmentId'>): Holder => ({
  kind: 'conversation',
  id,
  environmentId,
})

/** With its notices in words. */
export type Resolved = Omit<Extract<Resolution, { outcome: 'resolved' }>, 'notices'> & { readonly notices: string[] }

export const resolved = async (
  world: World,
  type: WorkType,
  id: string | number,
  more: Asked = {},
): Promise<Resolved> => {
  const answer = await ask(world, type, id, more)
  if (answer.outcome !== 'resolved') throw new Error(`not resolved: ${JSON.stringify(answer)}`)
  return inWords(answer)
}

export const issue = async (world: World, number: number): Promise<IsolatedEnvironment> =>
  (await resolved(world, 'issue', number)).environment

export type Inside = {
  readonly path: string
  readonly git: (...args: string[]) => string
  /** What git says, whether or not it succeeds. */
  readonly tryGit: (...args: string[]) => string
  readonly write: (file: string, content: string | Buffer) => void
  readonly read: (file: string) => string
  readonly commit: (file: string, content: string | Buffer, message?: string) => string
  readonly has: (file: string) => boolean
}

/** A person at work in a directory, with plain git. */
export const inside = (world: World, { path }: { readonly path: string }): Inside => {
  const git = (...args: string[]): string => world.box.raw(path, ...args)
  const write = (file: string, content: string | Buffer): void => writeIn(path, file, content)
  return {
    path,
    git,
    tryGit: (...args) => {
      try {
        return git(...args)
      } catch (error) {
        return String(error)
      }
    },
    write,
    read: (file) => readFileSync(join(path, file), 'utf8'),
    commit: (file, content, message = `change ${file}`) => {
      write(file, content)
      git('add', '-f', '--', file)
      git('commit', '-q', '-m', message)
      return git('rev-parse', 'HEAD')
    },
    has: (file) => existsSync(join(path, file)),
  }
}

export const remove = (
  world: World,
  environment: IsolatedEnvironment,
  options: Partial<RemoveOptions> = {},
): Promise<RemoveOutcome> => world.provider.destroy(environment, { trigger: 'command', ...options })

/** The reasons of a refusal; fails when it was none. */
export const refusal = async (
  world: World,
  environment: IsolatedEnvironment,
  options: Partial<RemoveOptions> = {},
): Promise<string[]> => {
  const outcome = await remove(world, environment, options)
  if (outcome.outcome !== 'refused') throw new Error(`it was not refused but ${outcome.outcome}`)
  if (!existsSync(environment.path)) throw new Error('it was refused, and the directory is gone all the same')
  return outcome.reasons.map((reason) => `${reason.gate} ${reason.answer}: ${describeReason(reason)}`)
}

/** With its notices and the note about its branch in words. */
export type Gone = Omit<Removed, 'notices' | 'branchNote'> & {
  readonly restorePoint: RestorePoint
  readonly notices: string[]
  readonly branchNote: string
}

export const removed = async (
  world: World,
  environment: IsolatedEnvironment,
  options: Partial<RemoveOptions> = {},
): Promise<Gone> => {
  const outcome = await remove(world, environment, options)
  if (outcome.outcome !== 'removed') throw new Error(`not removed: ${JSON.stringify(outcome)}`)
  const { restorePoint } = outcome
  if (restorePoint === undefined) throw new Error('removed without a restore point')
  if (existsSync(environment.path)) throw new Error('removed, and the directory is still there')
  return { ...inWords(outcome), restorePoint, branchNote: noteInWords(outcome.branchNote) }
}

/** Removes by force and brings it back: whatever was there must be there again. */
export const thereAndBack = async (world: World, environment: IsolatedEnvironment): Promise<Inside> => {
  const { restorePoint } = await removed(world, environment, { force: true })
  const { environment: back } = await world.provider.restore(restorePoint)
  return inside(world, back)
}

export const branchExists = (world: World, branch: string): boolean =>
  world.repo.git('for-each-ref', '--format=%(refname)', 'refs/heads').split('\n').includes(`refs/heads/${branch}`)

let conversations = 0
export const conversation = async (world: World, more: Partial<Conversation> = {}): Promise<Conversation> => {
  const id = `conversation-${(conversations += 1)}`
  const now = world.context.clock()
  const made = await world.context.store.conversations.ensure({
    id,
    platform: 'slack',
    conversationId: id,
    codebaseId: world.codebase.id,
    environmentId: undefined,
    persistent: false,
    agent: undefined,
    lastActivityAt: now,
    closedAt: undefined,
    createdAt: now,
    ...more,
  })
  return made
}

/** Every file, link and directory below, with its content and mode, as one text that can be compared. */
export const fingerprint = (root: string, except: (path: string) => boolean = () => false): string => {
  const lines: string[] = []
  const visit = (path: string): void => {
    if (except(path)) return
    const found = lstatSync(path)
    const mode = found.mode.toString(8)
    if (found.isDirectory()) {
      lines.push(`${path} ${mode}`)
      for (const name of readdirSync(path).sort()) visit(join(path, name))
    } else if (found.isSymbolicLink()) lines.push(`${path} -> ${readlinkSync(path)}`)
    else if (found.isFile()) {
      lines.push(`${path} ${mode} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`)
    } else lines.push(`${path} ${mode}`)
  }
  visit(root)
  return lines.join('\n')
}

/** A real program in a directory, ended when the test is over. */
export const program = async (
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<Disposable & { readonly pid: number }> => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'], ...options })
  await once(child, 'spawn')
  return {
    pid: child.pid ?? 0,
    [Symbol.dispose]: () => {
      child.kill('SIGKILL')
    },
  }
}

/** Whether the repository's object store has a blob with this content. */
export const hasBlob = (world: World, content: string): boolean => {
  const sha = execFileSync('git', ['hash-object', '--stdin'], { input: content, encoding: 'utf8' }).trim()
  try {
    world.repo.git('cat-file', '-e', sha)
    return true
  } catch {
    return false
  }
}

/** A bug that the text of an error names. */
export const messageOf = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise
  } catch (error) {
    return messageIn(error)
  }
  throw new Error('it did not fail')
}

/** The ways out of a refusal by their titles. */
/** What `coppice worktree remove` prints if it refuses. */
export const removeOnTerminal = async (
  { context, codebase, provider }: World,
  { id }: Pick<IsolatedEnvironment, 'id'>,
): Promise<string> => {
  const environment = await context.store.environments.get(id)
  if (environment === undefined) throw new Error('the environment is gone')
  const place = { context, codebase, environments: async () => provider }
  const result = await removeWorktree(place, environment, { forced: false, by: 'a test' })
  return result.outcome === 'refused' ? refusalText(result, { ...asProgram, now: context.clock() }) : 'Removed'
}

export const waysIn = (text: string): Map<string, string> =>
  new Map(
    [...text.matchAll(/^ \d+\. (.+?): +(.*)$/gm)].map(([, title = '', how = '']) => [
      title,
      how.replace(/^`([^`]*)`$/, '$1'),
    ]),
  )
