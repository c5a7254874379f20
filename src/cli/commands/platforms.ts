import { command } from '../../commands/command.ts'
import { describeRemedy } from '../../commands/views/remedy.ts'
import { ago, asProgram, type Cell, printable, table, type View } from '../../commands/views/view.ts'
import { toAppError } from '../../domain/errors.ts'
import { anyDescriptor, type PlatformSettings, remoteNames, type RemotePlatformName } from '../../platforms/remote.ts'
import { runningServer } from '../../server/record.ts'
import { readToken } from '../../server/token-file.ts'
import type { CliCall } from '../cli-call.ts'
import { platformSettingsOf } from './platforms-settings.ts'

export type PlatformRow = {
  readonly platform: string
  /** `not running`: configured, but no server to connect it. `incomplete`: a server couldn't either. */
  readonly state: 'connected' | 'connecting' | 'disconnected' | 'off' | 'not running' | 'incomplete' | 'not configured'
  readonly since: number | undefined
  readonly lastMessageAt: number | undefined
  readonly lastError: string | undefined
}

export type PlatformsResult = { readonly server: string | undefined; readonly platforms: readonly PlatformRow[] }

const run = async (call: CliCall): Promise<PlatformsResult> => {
  const { context } = await call.open()
  const { home } = context
  const server = runningServer(home)
  const told = server === undefined ? undefined : await ofServer(server.url, home, call)
  const known = new Map((told ?? []).map((row) => [row.platform, row]))
  const { settings } = platformSettingsOf(context)
  const others = remoteNames
    .filter((name) => !known.has(name))
    .map((name): PlatformRow => {
      const configured = anyDescriptor(name).isConfigured(settings[name])
      if (configured && told !== undefined)
        call.notice(`${name} was configured after the server started: restart the server`)
      return { ...nothing, platform: name, ...(configured ? configuredState(name, settings) : notConfigured) }
    })
  return { server: told === undefined ? undefined : server?.url, platforms: [...known.values(), ...others] }
}

const notConfigured = { state: 'not configured' } as const

/** As the server would say it when it starts. */
const configuredState = (
  name: RemotePlatformName,
  settings: PlatformSettings,
): Pick<PlatformRow, 'state' | 'lastError'> => {
  try {
    anyDescriptor(name).validate(settings[name])
    return { state: 'not running', lastError: undefined }
  } catch (error) {
    const { message, remedy } = toAppError(error)
    const todo = remedy === undefined ? '' : `; ${describeRemedy(remedy, asProgram)}`
    return { state: 'incomplete', lastError: `${message}${todo}` }
  }
}

const nothing = { since: undefined, lastMessageAt: undefined, lastError: undefined }

/** A server that doesn't respond counts as none, with a notice. */
const ofServer = async (url: string, home: string, { signal, notice }: CliCall): Promise<PlatformRow[] | undefined> => {
  try {
    const token = readToken(home)?.token ?? ''
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)])
    const response = await fetch(`${url}/api/platforms`, {
      headers: { authorization: `Bearer ${token}` },
      signal: limit,
    })
    if (!response.ok) throw new Error(`status ${response.status}`)
    return rowsOf(await response.json())
  } catch (error) {
    signal.throwIfAborted()
    notice(`couldn't query the server at ${url}: ${toAppError(error).message}`)
    return undefined
  }
}

const ANSWER_MS = 5_000

const rowsOf = (answer: unknown): PlatformRow[] => {
  if (!Array.isArray(answer)) throw new Error('unexpected response')
  return (answer as readonly Record<string, unknown>[]).map((row) => ({
    platform: String(row['platform']),
    state: row['state'] as PlatformRow['state'],
    since: timeOf(row['since']),
    lastMessageAt: timeOf(row['lastMessageAt']),
    lastError: typeof row['lastError'] === 'string' ? row['lastError'] : undefined,
  }))
}

const timeOf = (text: unknown): number | undefined => (typeof text === 'string' ? Date.parse(text) : undefined)

const styles = {
  connected: 'green',
  connecting: 'yellow',
  disconnected: 'red',
  off: 'red',
  'not running': 'yellow',
  incomplete: 'red',
  'not configured': 'dim',
} as const satisfies Record<PlatformRow['state'], Cell['style']>

const toText = ({ server, platforms }: PlatformsResult, view: View): string => {
  const { now, paint, commandText } = view
  const when = (at: number | undefined): Cell => ({ text: at === undefined ? '' : ago(at, now), style: 'dim' })
  const rows = platforms.map(({ platform, state, since, lastMessageAt, lastError }): Cell[] => [
    { text: platform, style: 'bold' },
    { text: state, style: styles[state] },
    when(since),
    when(lastMessageAt),
    { text: printable(lastError ?? '') },
  ])
  const hint = platforms.some(({ state }) => state === 'not configured')
    ? [paint('dim', `Set one up with ${commandText('platforms setup <name>')}`)]
    : []
  return [
    table(['PLATFORM', 'STATE', 'SINCE', 'LAST MESSAGE', 'LAST ERROR'], rows, view),
    '',
    paint('dim', server === undefined ? 'No server is running.' : `(reported by the server at ${server})`),
    ...hint,
  ].join('\n')
}

const dateOf = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

export const platforms = command<PlatformsResult, CliCall>({
  run,
  toText,
  toJson: ({ server, platforms: rows }) => ({
    server: server ?? null,
    platforms: rows.map(({ platform, state, since, lastMessageAt, lastError }) => ({
      platform,
      state,
      since: dateOf(since),
      lastMessageAt: dateOf(lastMessageAt),
      lastError: lastError ?? null,
    })),
  }),
})
