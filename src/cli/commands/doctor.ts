import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { settleClones } from '../../isolation/codebase-clone.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { reconcile } from '../../isolation/reconcile.ts'
import { resolveCodebase } from '../../isolation/codebases.ts'
import { type Call, command, isSet, standsIn, type Workplace } from '../../conversations/commands/command.ts'
import type { Finding } from '../doctor/finding.ts'
import { examineMachine } from '../doctor/machine.ts'
import { examineCodebase, examineHome } from '../doctor/records.ts'
import { exitCodes } from '../../conversations/commands/failure.ts'
import { count, printable, type View } from '../../conversations/commands/view.ts'

export type DoctorResult = { readonly findings: readonly Finding[]; readonly fixed: readonly string[] }

const run = async (call: Call): Promise<DoctorResult> => {
  const workplace = await call.open()
  const codebases = await codebasesOf(call, workplace)
  const fixed = isSet(call.values, 'fix') ? await repair(workplace.context, codebases) : []
  const findings = [
    ...(await examineMachine(workplace)),
    ...(await Promise.all(codebases.map((codebase) => examineCodebase(workplace.context, codebase)))).flat(),
    ...(await examineHome(workplace.context, await workplace.context.store.codebases.list(workplace.context.host))),
  ]
  return { findings, fixed }
}

/** All of them, wherever one stands: what is wrong is seldom where one looks. */
const codebasesOf = async (call: Call, { context }: Workplace): Promise<Codebase[]> =>
  call.codebase === undefined
    ? context.store.codebases.list(context.host)
    : [await resolveCodebase(context, { name: call.codebase, cwd: standsIn(call) })]

/** What cannot be repaired is found again right after, and reported there. */
const repair = async (context: IsolationContext, codebases: readonly Codebase[]): Promise<string[]> => {
  const done: string[] = []
  const { settled } = await settleClones(context)
  if (settled > 0) done.push(`cleared ${count(settled, 'interrupted clone')}`)
  for (const codebase of codebases) {
    try {
      const before = (await context.store.leases.all(context.host)).length
      const { settled, returned } = await reconcile(context, codebase)
      const dropped = before - (await context.store.leases.all(context.host)).length
      done.push(
        ...settled.map((what) => `${codebase.name}: settled an interrupted ${what}`),
        ...returned.map(({ branch }) => `${codebase.name}: ${branch} is there again`),
        ...(dropped > 0 ? [`${codebase.name}: dropped ${count(dropped, 'lease')} of dead processes`] : []),
      )
    } catch (error) {
      done.push(`${codebase.name}: could not be repaired: ${toAppError(error).message}`)
    }
  }
  return done
}

const toText = ({ findings, fixed }: DoctorResult, { paint }: View): string => {
  const signs = { ok: paint('green', 'ok     '), note: paint('cyan', 'note   '), problem: paint('red', 'problem') }
  const longest = Math.max(...findings.map(({ about }) => about.length))
  const problems = findings.filter(({ state }) => state === 'problem').length
  return [
    ...fixed.map((what) => `${paint('green', 'fixed  ')}  ${printable(what)}`),
    ...findings.flatMap(({ state, about, detail, remedy }) => [
      `${signs[state]}  ${about.padEnd(longest)}  ${printable(detail)}`,
      ...(remedy === undefined ? [] : [`${' '.repeat(11 + longest)}${paint('dim', `→ ${printable(remedy)}`)}`]),
    ]),
    problems === 0 ? paint('green', 'Everything is as it should be.') : paint('red', `${count(problems, 'problem')}.`),
  ].join('\n')
}

const isHealthy = ({ findings }: DoctorResult): boolean => findings.every(({ state }) => state !== 'problem')

export const doctor = command<DoctorResult>({
  run,
  toText,
  toJson: (result) => ({
    healthy: isHealthy(result),
    fixed: result.fixed,
    findings: result.findings.map(({ state, about, detail, remedy }) => ({
      state,
      about,
      detail,
      remedy: remedy ?? null,
    })),
  }),
  exitCode: (result) => (isHealthy(result) ? exitCodes.done : exitCodes.failed),
})
