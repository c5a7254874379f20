import { styleText } from 'node:util'
import { AppError } from '../../domain/errors.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { createEnvironments } from '../../isolation/environments.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { command, isSet, type Workplace } from '../../commands/command.ts'
import { scopeOf } from '../../commands/fleet/scope.ts'
import { exitCodes } from '../../commands/views/failure.ts'
import { asProgram, paintFor, plain, printable, type View } from '../../commands/views/view.ts'
import type { CliCall } from '../cli-call.ts'
import type { LinePaint } from '../fleet-watch/line.ts'
import { watchFleet } from '../fleet-watch/watch.ts'

type Watched = { readonly interrupted: boolean; readonly late: readonly string[] }

const run = async (call: CliCall): Promise<Watched> => {
  const { stdin: input, stdout: output } = process
  if (!input.isTTY || !output.isTTY || isSet(call.values, 'json') || call.env['TERM'] === 'dumb') {
    throw new AppError('usage', 'fleet watch needs a terminal', {
      remedy: remedy`use ${coppice('fleet status')} instead, with --json for programs`,
    })
  }
  const opened = await call.open()
  const codebase = call.codebase === undefined ? undefined : await scopeOf(call, opened)
  const workplace = withoutTerminal(opened)
  const { clock, secrets } = workplace.context
  const view = (): View => ({
    ...asProgram,
    now: clock(),
    userHome: call.env['HOME'],
    redact: secrets.redactKnown,
  })
  const paint: LinePaint =
    paintFor(output, call.env) === plain
      ? (_style, text) => text
      : (style, text) => styleText(style, text, { validateStream: false })
  const { progress } = opened.context
  const late = await watchFleet({ workplace, call, codebaseId: codebase?.id, view, paint, input, output, progress })
  return { interrupted: call.signal.aborted, late }
}

/** Nothing else may write on the screen, or read keys: what would ask on the terminal is refused. */
const withoutTerminal = (workplace: Workplace): Workplace => {
  const context: IsolationContext = { ...workplace.context, progress: () => undefined, approve: undefined }
  const environments = createEnvironments(context)
  return {
    ...workplace,
    context,
    environments: async () => environments,
    fleet: async () => ({ ...(await workplace.fleet()), isolation: context, environments: async () => environments }),
  }
}

export const fleetWatch = command<Watched, CliCall>({
  run,
  toText: ({ late }) => late.map(printable).join('\n'),
  toJson: ({ late }) => late,
  exitCode: ({ interrupted }) => (interrupted ? exitCodes.interrupted : exitCodes.done),
})
