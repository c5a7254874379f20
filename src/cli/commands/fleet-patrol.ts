import { counted } from '../../domain/text/words.ts'
import { type RoundReport, runRound } from '../../fleet/round.ts'
import { fleetStatus } from '../../fleet/status.ts'
import { type Call, command } from '../../commands/command.ts'
import { describeFinding } from '../../commands/views/patrol.ts'
import { exitCodes } from '../../commands/views/failure.ts'
import { lastCommand, printable, type View } from '../../commands/views/view.ts'

type Patrolled = RoundReport & { readonly needs: number; readonly now: number }

const run = async (call: Call): Promise<Patrolled> => {
  const fleet = await (await call.open()).fleet()
  const now = fleet.isolation.clock()
  const report = await runRound(fleet)
  return { ...report, now, needs: (await fleetStatus(fleet)).needsYou.length }
}

const toText = ({ patrol, pools, needs, now }: Patrolled, view: View): string => {
  const problems = [
    ...patrol.problems.map(({ agent, why }) => (agent === '' ? why : `${agent}: ${why}`)),
    ...pools.problems.map(({ pool, why }) => `pool ${pool}: ${why}`),
  ]
  const done = [
    ...patrol.findings.map((finding) => describeFinding(finding, now)),
    ...pools.started.map((name) => `${name} was started.`),
    ...pools.draining.map((name) => `${name} may finish its item, then it ends: its pool is shrinking.`),
    ...pools.gone.map((name) => `${name} was ended: its pool is shrinking.`),
  ]
  const lines = [
    ...done.map((one) => printable(one)),
    ...problems.map((why) => `${view.paint('red', 'problem')} ${printable(why)}`),
    ...(needs === 0
      ? []
      : [
          `${counted(needs, 'thing')} ${needs === 1 ? 'needs' : 'need'} you: ${lastCommand(view.commandText('fleet status'), view)}`,
        ]),
  ]
  return lines.length === 0 ? 'No problems found.' : lines.join('\n')
}

export const fleetPatrol = command<Patrolled>({
  run,
  toText,
  toJson: ({ patrol, pools, needs, now }) => ({
    findings: patrol.findings.map((finding) => ({
      ...finding,
      agent: finding.agent ?? null,
      item: finding.item ?? null,
      message: describeFinding(finding, now),
    })),
    problems: patrol.problems,
    pools,
    needsYou: needs,
  }),
  exitCode: ({ patrol, pools }) =>
    patrol.problems.length + pools.problems.length === 0 ? exitCodes.done : exitCodes.failed,
})
