import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { counted } from '../../domain/text/words.ts'
import { recoverRepositoryClones } from '../../isolation/codebases/clone-repository.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { movedNotice } from '../../isolation/moved.ts'
import { reconcile } from '../../isolation/reconcile.ts'
import { repositoryState } from '../../isolation/codebases/repository-place.ts'
import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import { type Call, command, isSet, cwdOf, type Workplace } from '../../commands/command.ts'
import { type Finding, fix, problem } from '../doctor/finding.ts'
import { examineHooks } from '../doctor/hooks.ts'
import { examineFleet } from '../doctor/fleet.ts'
import { examineMachine } from '../doctor/machine.ts'
import { examineCodebase, examineHome } from '../doctor/records.ts'
import { exitCodes, faultMessage } from '../../commands/views/failure.ts'
import { describeNotices } from '../../commands/views/notices.ts'
import { asProgram, printable, type View } from '../../commands/views/view.ts'
import { describeRemedy } from '../../commands/views/remedy.ts'

export type DoctorResult = { readonly findings: readonly Finding[]; readonly fixed: readonly string[] }

const run = async (call: Call): Promise<DoctorResult> => {
  const workplace = await call.open()
  const { context } = workplace
  const codebases = await codebasesOf(call, workplace)
  const { fixed, failed } = isSet(call.values, 'fix') ? await repair(context, codebases) : { fixed: [], failed: [] }
  const findings = [
    ...(await examineMachine(workplace)),
    ...(await examineHooks(workplace)),
    ...failed,
    ...(await Promise.all((await codebasesOf(call, workplace)).map((one) => examineCodebase(context, one)))).flat(),
    ...(call.codebase === undefined ? await examineFleet(workplace) : []),
    ...(await examineHome(context, await context.store.codebases.list(context.host))),
  ]
  return { findings: withoutRepeated(findings, failed), fixed }
}

/** Don't suggest a fix that was just tried. */
const withoutRepeated = (findings: readonly Finding[], failed: readonly Finding[]): Finding[] => {
  const tried = new Set(failed.map(({ about }) => about))
  return findings.filter((one) => failed.includes(one) || !tried.has(one.about) || !advisesFix(one))
}

const advisesFix = ({ remedy = '' }: Finding): boolean => describeRemedy(remedy, asProgram).endsWith(fix)

/** All codebases, not only the current one: the problem is often elsewhere. */
const codebasesOf = async (call: Call, { context }: Workplace): Promise<Codebase[]> => {
  if (call.codebase === undefined) return context.store.codebases.list(context.host)
  const named = await context.store.codebases.byName(context.host, call.codebase)
  // Includes one whose repository is gone.
  return [named ?? (await resolveCodebase(context, { name: call.codebase, cwd: cwdOf(call) }))]
}

type Repaired = { readonly fixed: readonly string[]; readonly failed: readonly Finding[] }

/** Reconciliation verifies everything it reports as done. */
const repair = async (context: IsolationContext, codebases: readonly Codebase[]): Promise<Repaired> => {
  const fixed: string[] = []
  const failed: Finding[] = []
  const clones = await recoverRepositoryClones(context)
  if (clones.settled.length > 0) fixed.push(`cleared ${counted(clones.settled.length, 'interrupted clone')}`)
  for (const codebase of codebases) {
    const { name } = codebase
    // Reported later, with a remedy.
    if (repositoryState(codebase).state !== 'there') continue
    try {
      const before = (await context.store.leases.all(context.host)).length
      const { settled, returned, moved, left } = await reconcile(context, codebase)
      const dropped = before - (await context.store.leases.all(context.host)).length
      const { repoPath = codebase.repoPath } = (await context.store.codebases.get(codebase.id)) ?? {}
      fixed.push(
        ...(repoPath === codebase.repoPath
          ? []
          : [`${name}: the repository was moved to ${repoPath}; updated its path`]),
        ...describeNotices([...settled, ...moved.map(movedNotice)], asProgram).map((what) => `${name}: ${what}`),
        ...returned.map(({ branch }) => `${name}: ${branch} is back`),
        ...(dropped > 0 ? [`${name}: dropped ${counted(dropped, 'lease')} of dead processes`] : []),
      )
      failed.push(...describeNotices(left, asProgram).map((what) => problem(name, what, `fix that, then run: ${fix}`)))
    } catch (error) {
      const fault = toAppError(error)
      const { remedy } = fault
      failed.push(
        problem(
          name,
          `couldn't repair it: ${faultMessage(fault, asProgram)}`,
          remedy ?? 'run it again with --verbose for details',
        ),
      )
    }
  }
  return { fixed, failed }
}

const toText = ({ findings, fixed }: DoctorResult, view: View): string => {
  const { paint } = view
  const signs = { ok: paint('green', 'ok     '), note: paint('cyan', 'note   '), problem: paint('red', 'problem') }
  const longest = Math.max(...findings.map(({ about }) => about.length))
  const problems = findings.filter(({ state }) => state === 'problem').length
  return [
    ...fixed.map((what) => `${paint('green', 'fixed  ')}  ${printable(what)}`),
    ...findings.flatMap(({ state, about, detail, remedy }) => [
      `${signs[state]}  ${about.padEnd(longest)}  ${printable(detail)}`,
      ...(remedy === undefined
        ? []
        : [`${' '.repeat(11 + longest)}${paint('dim', `→ ${printable(describeRemedy(remedy, view))}`)}`]),
    ]),
    problems === 0 ? paint('green', 'No problems found.') : paint('red', `${counted(problems, 'problem')}.`),
  ].join('\n')
}

const isHealthy = ({ findings }: DoctorResult): boolean => findings.every(({ state }) => state !== 'problem')

export const doctor = command<DoctorResult>({
  run,
  toText,
  toJson: (result, view) => ({
    healthy: isHealthy(result),
    fixed: result.fixed,
    findings: result.findings.map(({ state, about, detail, remedy }) => ({
      state,
      about,
      detail,
      remedy: remedy === undefined ? null : describeRemedy(remedy, view),
    })),
  }),
  exitCode: (result) => (isHealthy(result) ? exitCodes.done : exitCodes.failed),
})
