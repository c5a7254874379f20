import type { Readable, Writable } from 'node:stream'
import { allowedEnvironment } from '../../process/environment.ts'
import { runProgram } from '../../process/spawn.ts'
import { type Fields, fieldsOf, listOf, numberOf, textOf } from '../fields.ts'
import type { InstalledProgram } from '../installed.ts'
import { createLines } from '../lines.ts'
import { isSessionId } from '../resumable.ts'

/** What Codex would ask about when its terminal starts in this directory. */
export type CodexState = {
  readonly version: string | undefined
  readonly needsLogin: boolean
  /** Hooks that the user hasn't approved in their current form. */
  readonly unreviewedHooks: readonly CodexHook[]
  /** The threads of this directory, newest first. */
  readonly threads: readonly CodexThread[]
}

export type CodexHook = { readonly key: string; readonly hash: string }

export type CodexThread = { readonly id: string; readonly createdAt: number; readonly preview: string }

export type CodexQuestion = {
  readonly directory: string
  /** `-c` settings. */
  readonly settings: readonly string[]
}

const TIMEOUT_MS = 15_000

/**
 * Asks `codex app-server`, the machine interface behind the terminal, which takes 0.2 s. Undefined if it doesn't
 * answer, as in versions that can't say who is logged in.
 */
export const askCodex = async (
  { command, own, granted, clock }: InstalledProgram,
  { directory, settings }: CodexQuestion,
): Promise<CodexState | undefined> => {
  const answers = new Map<number, Fields>()
  try {
    await runProgram({
      command,
      args: ['app-server', ...settings.flatMap((setting) => ['-c', setting])],
      cwd: directory,
      env: allowedEnvironment(own, granted),
      clock,
      timeoutMs: TIMEOUT_MS,
      outputLimitBytes: 16_000,
      dialogue: (stdin, stdout) => ask(stdin, stdout, requestsFor(directory), answers),
    })
  } catch {
    return undefined
  }
  const results = [...answers].map(([id, answer]) => [id, fieldsOf(answer['result'])] as const)
  const [start, account, hooks, threads] = names.map((_, id) => results.find(([one]) => one === id)?.[1])
  if (account === undefined || typeof account['requiresOpenaiAuth'] !== 'boolean') return undefined
  return {
    version: /\/(\d+\.\d+\.\d+)/.exec(textOf(start?.['userAgent']) ?? '')?.[1],
    needsLogin: account['requiresOpenaiAuth'] && fieldsOf(account['account'])['type'] === undefined,
    unreviewedHooks: listOf(hooks?.['data']).flatMap((entry) => listOf(entry['hooks']).flatMap(unreviewed)),
    threads: listOf(threads?.['data'])
      .filter(({ cwd }) => cwd === directory)
      .flatMap(threadOf)
      .toSorted((a, b) => b.createdAt - a.createdAt),
  }
}

/** The index of a method is the ID of its request. */
const names = ['initialize', 'account/read', 'hooks/list', 'thread/list'] as const

const requestsFor = (directory: string): readonly object[] => {
  const parameters: Readonly<Record<(typeof names)[number], object>> = {
    initialize: { clientInfo: { name: 'coppice', version: '1' } },
    'account/read': {},
    'hooks/list': { cwds: [directory] },
    'thread/list': { cwd: directory, limit: 50 },
  }
  const [first, ...others] = names.map((method, id) => ({ id, method, params: parameters[method] }))
  return [first ?? {}, { method: 'initialized' }, ...others]
}

const ask = (stdin: Writable, stdout: Readable, requests: readonly object[], answers: Map<number, Fields>): void => {
  const lines = createLines((line) => {
    const message = parsed(line)
    const id = numberOf(message['id'])
    if (id === undefined) return
    answers.set(id, message)
    // The server exits at the end of its input.
    if (answers.size === names.length) stdin.end()
  })
  stdout.setEncoding('utf8')
  stdout.on('data', lines.add)
  stdin.write(requests.map((request) => `${JSON.stringify(request)}\n`).join(''))
}

const parsed = (line: string): Fields => {
  try {
    return fieldsOf(JSON.parse(line))
  } catch {
    return {}
  }
}

const unreviewed = (hook: Fields): CodexHook[] => {
  const [key, hash, status] = [textOf(hook['key']), textOf(hook['currentHash']), textOf(hook['trustStatus'])]
  if (key === undefined || hash === undefined) return []
  return status === 'untrusted' || status === 'modified' ? [{ key, hash }] : []
}

const threadOf = (thread: Fields): CodexThread[] => {
  const [id, createdAt] = [textOf(thread['id']), numberOf(thread['createdAt'])]
  if (id === undefined || createdAt === undefined || !isSessionId(id)) return []
  return [{ id, createdAt: createdAt * 1000, preview: textOf(thread['preview']) ?? '' }]
}
