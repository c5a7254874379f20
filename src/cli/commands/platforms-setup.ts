import { command } from '../../commands/command.ts'
import { exitCodes } from '../../commands/views/failure.ts'
import { usage } from '../../commands/grammar/usage.ts'
import { capitalized } from '../../domain/text/words.ts'
import { aligned, printable, tilde, type View, wrapped } from '../../commands/views/view.ts'
import type { Check } from '../../platforms/checks.ts'
import { anyDescriptor, isRemotePlatform, remoteNames, type RemotePlatformName } from '../../platforms/remote.ts'
import type { CliCall } from '../cli-call.ts'
import { platformSettingsOf } from './platforms-settings.ts'

export type SetupResult = {
  readonly platform: RemotePlatformName
  readonly file: string
  /** The platform's settings that are set. */
  readonly set: ReadonlySet<string>
  readonly checks: readonly Check[]
}

const run = async (call: CliCall): Promise<SetupResult> => {
  const [name = ''] = call.words
  if (!isRemotePlatform(name)) {
    throw usage(`unknown platform ${JSON.stringify(name)}`, `choose one of ${remoteNames.join(', ')}`)
  }
  const { context } = await call.open()
  const { settings, file } = platformSettingsOf(context)
  const checks = await anyDescriptor(name).check(settings[name], { fetch, clock: context.clock, signal: call.signal })
  return {
    platform: name,
    file,
    set: new Set(Object.keys(settings[name])),
    // Telegram URLs contain the token, and errors may contain the URL.
    checks: checks.map((check) => ({ ...check, detail: context.secrets.redact(check.detail) })),
  }
}

const settingsOf = (
  platform: RemotePlatformName,
): readonly { readonly variable: string; readonly key: string; readonly what: string }[] =>
  Object.entries(anyDescriptor(platform).settings).map(([key, { variable, about }]) => ({ variable, key, what: about }))

const isReady = ({ checks }: SetupResult): boolean => checks.every(({ passed }) => passed)

const toText = (result: SetupResult, view: View): string => {
  const { platform, file, set, checks } = result
  const { paint, columns = 100, commandText } = view
  const descriptor = anyDescriptor(platform)
  const { steps, paste } = descriptor.guide
  const title = (text: string): string => paint('bold', text)
  return [
    title(`Set up ${descriptor.title}`),
    ...steps.map((step, n) => `${String(n + 1).padStart(2)}. ${wrapped(step, columns, 4).trimStart()}`),
    '',
    ...(paste === undefined ? [] : [title(capitalized(paste.what)), paste.text, '']),
    title('Settings'),
    `Set them as environment variables of the server, or in ${tilde(file, view)} under platforms: → ${platform}: (restrict access: chmod 600).`,
    aligned(
      settingsOf(platform).map(({ variable, key, what }) => [
        set.has(key) ? { text: 'set', style: 'green' } : { text: 'not set', style: 'dim' },
        { text: variable },
        { text: key, style: 'dim' },
        { text: what },
      ]),
      view,
    ),
    '',
    title('Checks'),
    ...checks.flatMap(({ what, passed, detail, remedy }) => [
      `${passed ? paint('green', 'pass') : paint('red', 'fail')}  ${what}: ${printable(detail)}`,
      ...(remedy === undefined ? [] : [`      ${paint('dim', `→ ${printable(remedy)}`)}`]),
    ]),
    '',
    isReady(result)
      ? `${paint('green', 'Ready.')} Run ${commandText('serve')} to connect; ${commandText('platforms')} shows the status.`
      : paint('yellow', 'Not ready yet. Fix the failed checks, then run this again.'),
  ].join('\n')
}

export const platformsSetup = command<SetupResult, CliCall>({
  run,
  toText,
  toJson: (result) => ({
    platform: result.platform,
    ready: isReady(result),
    file: result.file,
    steps: anyDescriptor(result.platform).guide.steps,
    paste: anyDescriptor(result.platform).guide.paste ?? null,
    settings: settingsOf(result.platform).map((one) => ({ ...one, set: result.set.has(one.key) })),
    checks: result.checks.map(({ what, passed, detail, remedy }) => ({ what, passed, detail, remedy: remedy ?? null })),
  }),
  exitCode: (result) => (isReady(result) ? exitCodes.done : exitCodes.failed),
})
