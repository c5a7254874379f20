import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import { type Trusted, trustCodebase } from '../../isolation/codebases/remove.ts'
import { type Call, command, cwdOf } from '../../commands/command.ts'
import { codebaseJson } from '../../commands/views/json.ts'
import { printable, type View } from '../../commands/views/view.ts'

const run = async (call: Call): Promise<Trusted> => {
  const { context } = await call.open()
  const codebase = await resolveCodebase(context, { name: call.words[0], cwd: cwdOf(call), signal: call.signal })
  return trustCodebase(context, codebase)
}

const toText = ({ codebase: { name }, setup, teardown, allowForks, checks }: Trusted, { paint }: View): string => {
  if (setup.length + teardown.length + checks.length === 0 && !allowForks)
    return `${name} has no setup, teardown, formula or landing commands, so there is nothing to trust.`
  return [
    `${paint('green', 'Trusted')}: ${paint('bold', name)} may run these, until they change:`,
    ...setup.map((line) => `  setup     ${printable(line)}`),
    ...teardown.map((line) => `  teardown  ${printable(line)}`),
    ...checks.map((line) => `  check     ${printable(line)}`),
    ...(allowForks ? ['  allowForks: also in worktrees of forks, which get the copied files too'] : []),
  ].join('\n')
}

export const codebaseTrust = command<Trusted>({
  run,
  toText,
  toJson: ({ codebase, setup, teardown, allowForks, checks }) => ({
    codebase: codebaseJson(codebase),
    setup,
    teardown,
    allowForks,
    checks,
  }),
})
