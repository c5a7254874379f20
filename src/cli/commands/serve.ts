import { command, isSet, listOf, textOf } from '../../commands/command.ts'
import { type View } from '../../commands/views/view.ts'
import { usage } from '../../commands/grammar/usage.ts'
import { counted } from '../../domain/text/words.ts'
import type { CliCall, Serving, Stopped } from '../cli-call.ts'

export type ServeResult = Stopped & { readonly url: string }

const DEFAULT_PORT = 4780
const DEFAULT_GRACE_SECONDS = 30

const run = async (call: CliCall): Promise<ServeResult> => {
  const { values, signal, live } = call
  const serving = await call.serve({
    port: numberOf(textOf(values, 'port'), '--port', DEFAULT_PORT, 65_535),
    host: textOf(values, 'host') ?? '127.0.0.1',
    allowRemote: isSet(values, 'allow-remote'),
    allowedHosts: listOf(values, 'allow-host'),
    testPlatform: isSet(values, 'test-platform'),
    graceMs: numberOf(textOf(values, 'grace'), '--grace', DEFAULT_GRACE_SECONDS, 86_400) * 1000,
    signal,
  })
  const { newToken, tokenFile } = serving
  if (live === undefined) call.notice([...heading(serving), `  token  in ${tokenFile}`].join('\n'))
  else {
    live(`${heading(serving).join('\n')}\n`)
    // Not `live`, which redacts secrets.
    if (newToken !== undefined && call.showSecret !== undefined) {
      call.showSecret(`  token  ${newToken}\n         (shown once; stored in ${tokenFile})\n`)
    } else live(`  token  in ${tokenFile}\n`)
    live(`${hints.join('\n')}\n`)
  }
  return { ...(await serving.stopped), url: serving.url }
}

const heading = ({ url, notices }: Serving): string[] => [
  ...notices.map((notice) => `note: ${notice}`),
  `Coppice is listening on ${url}`,
]

const hints = [
  '  try    coppice chat "fix the login bug"     in any git repository, from another terminal',
  '  stop   Ctrl-C',
]

const numberOf = (text: string | undefined, flag: string, otherwise: number, most: number): number => {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (!/^\d+$/.test(text) || value > most)
    throw usage(`invalid ${flag} ${JSON.stringify(text)}`, `use a whole number from 0 to ${most}`)
  return value
}

const toText = ({ finished, left }: ServeResult, { paint }: View): string => {
  const done = finished === 0 ? '' : ` ${counted(finished, 'running message')} finished first.`
  const rest = left === 0 ? '' : ` ${counted(left, 'unfinished message')} will run again on the next start.`
  return `${paint('green', 'Stopped.')}${done}${rest}`
}

export const serve = command<ServeResult, CliCall>({ run, toText, toJson: (result) => result })
