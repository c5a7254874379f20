import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { readAdminDir } from '../../git/admin-dir.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { copiedRecords } from '../../isolation/codebases/copied-records.ts'
import { orphans, presenceOf, providerOf } from '../../isolation/provider-of.ts'
import {
  brokenRecords,
  type FileContent,
  type RecordFault,
  recordFault,
} from '../../isolation/providers/worktree/record-health.ts'
import { forgottenSpares } from '../../isolation/providers/worktree/forgotten-spares.ts'
import { shellWord, writeLine } from '../../domain/text/shell-word.ts'
import { basename, join } from 'node:path'
import { examineClone } from './clones.ts'
import { type Finding, fix, look, note, problem } from './finding.ts'

/** Compares each environment with git's record and its directory. */
export const examineWorktrees = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'providers' | 'host'>,
  codebase: Codebase,
): Promise<Finding[]> => {
  const findings: Finding[] = []
  for (const environment of await context.store.environments.live(codebase.id)) {
    // Paths are valid on their own host only.
    if (environment.host !== context.host) continue
    if (environment.status !== 'active' && environment.status !== 'missing') continue
    findings.push(...(await look(codebase.name, () => examineOne(context, codebase, environment))))
  }
  return findings
}

const examineOne = async (
  context: Pick<IsolationContext, 'git' | 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<Finding[]> => {
  const { name } = codebase
  const { branch, path, status } = environment
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state === 'moved') return [problem(name, `${branch} was moved to ${presence.tree.path}`, fix)]
  const fault = await recordFault(codebase, environment)
  if (presence.state === 'missing') {
    const detail = fault === undefined ? '' : `, and ${fault.detail}`
    return [
      problem(
        name,
        `${branch} is missing: ${path} doesn't exist${detail}`,
        await missingRemedy(codebase, environment, fault),
        fileOf(fault),
      ),
    ]
  }
  if (fault !== undefined)
    return [problem(name, `${branch}: ${fault.detail}`, repairRemedy(codebase, environment, fault), fileOf(fault))]
  if (presence.state !== 'present')
    return [problem(name, `${branch}: ${presence.detail}`, giveUp(codebase, environment), presence.file)]
  if (status === 'missing') return [problem(name, `${branch} is recorded as missing, but its directory exists`, fix)]
  const hasOwnRepository = (await providerOf(context, environment)).ownRepository(environment) !== undefined
  return hasOwnRepository ? examineClone(context, codebase, environment, presence.tree) : []
}

const fileOf = (fault: RecordFault | undefined): string | undefined =>
  fault?.repair.kind === 'clear' ? fault.repair.file : undefined

const missingRemedy = async (
  codebase: Codebase,
  environment: IsolatedEnvironment,
  fault: RecordFault | undefined,
): Promise<string> => {
  if (fault?.repair.kind === 'move') return repairRemedy(codebase, environment, fault)
  const { adminName, branch, path } = environment
  const dir = adminName === undefined ? undefined : join(codebase.repoPath, 'worktrees', adminName)
  const record = dir === undefined ? undefined : await readAdminDir(dir)
  const unlock =
    record?.lockReason === undefined || record.lockReason.startsWith('coppice: ')
      ? ''
      : `${git(codebase)} worktree unlock ${shellWord(path)} && `
  const remove = `${unlock}coppice worktree remove ${shellWord(branch)} --force --codebase ${shellWord(codebase.name)}`
  if (fault !== undefined) return `stop tracking it: ${remove}`
  const moved =
    record === undefined
      ? ''
      : `or, if you moved it by hand: printf '%s\\n' <new path>/.git > ${shellWord(join(record.dir, 'gitdir'))}; `
  return `mount its disk if it isn't mounted; ${moved}or stop tracking it: ${remove}`
}

const repairRemedy = (codebase: Codebase, environment: IsolatedEnvironment, { repair }: RecordFault): string => {
  switch (repair.kind) {
    case 'write': {
      const commands = repair.files.map(write).join(' && ')
      if (repair.away !== true) return `write it again, then run \`coppice doctor\` again: ${commands}`
      const broken = shellWord(repair.files[0]?.file ?? '')
      return `move it aside and check its content: mv ${broken} ${broken}.away && ${commands}`
    }
    case 'move':
      return `move it back, then run \`coppice doctor\` again: mv ${shellWord(repair.from)} ${shellWord(repair.to)}`
    case 'wait':
      return `another worktree is at ${repair.place}: move that one back first, then run \`coppice doctor\` again`
    case 'copied': {
      const copy = shellWord(repair.path)
      return `if it is a copy of the other, move it aside: mv ${copy} ${copy}.away; if not, link it again: ${write(repair.link)}`
    }
    case 'clear': {
      // Move it out of the git directory: git must not start with a FIFO in there, under any name.
      const away = shellWord(`${environment.path}.${basename(repair.file)}.away`)
      return `move it aside, then run \`coppice doctor\` again: mv ${shellWord(repair.file)} ${away}`
    }
    case 'give-up':
      return giveUp(codebase, environment)
  }
}

const write = ({ file, content }: FileContent): string => writeLine(file, content)

/** Only its files are left: they stay in place and become the user's. */
const giveUp = ({ name }: Codebase, { branch, path }: IsolatedEnvironment): string =>
  `keep its files and stop tracking it: coppice worktree adopt ${shellWord(path)} --codebase ${shellWord(name)} && coppice worktree remove ${shellWord(branch)} --codebase ${shellWord(name)}`

const git = ({ checkoutPath, repoPath }: Codebase): string => `git -C ${shellWord(checkoutPath ?? repoPath)}`

/** What git has and Coppice doesn't: other worktrees, and records git can't read. */
export const examineUnknown = async (context: IsolationContext, codebase: Codebase): Promise<Finding[]> => [
  ...(await unknownWorktrees(context, codebase)),
  ...(await recordsOfOriginal(codebase)),
  ...(await lostSpares(context, codebase)),
  ...(await unreadableRecords(context, codebase)),
]

const lostSpares = async (context: Pick<IsolationContext, 'store' | 'host'>, codebase: Codebase): Promise<Finding[]> =>
  (await forgottenSpares(context, codebase)).map(({ path, record, isThere }) =>
    problem(
      codebase.name,
      isThere
        ? `${path} is a spare worktree that is missing from the database`
        : `${record.dir} is git's record of a spare worktree that is gone`,
      fix,
    ),
  )

const recordsOfOriginal = async (codebase: Codebase): Promise<Finding[]> =>
  (await copiedRecords(codebase)).map(({ dir, worktreePath }) =>
    note(
      codebase.name,
      `${dir} was copied with the repository: ${worktreePath ?? 'its worktree'} belongs to the original`,
      `delete the copied record: rm -r ${shellWord(dir)}`,
    ),
  )

const unknownWorktrees = async (context: IsolationContext, codebase: Codebase): Promise<Finding[]> =>
  (await orphans(context, codebase)).map(({ path, branch, missing, locked, otherHome }) => {
    const unlock = locked === undefined ? '' : `${git(codebase)} worktree unlock ${shellWord(path)} && `
    return note(
      codebase.name,
      `${path} (${branch ?? 'no branch'}) is a worktree ${otherHome === undefined ? "that Coppice doesn't track" : 'of another Coppice home'}${missing === true ? ', and its directory is gone' : ''}`,
      missing === true
        ? // Not `git worktree prune`: it drops every missing one, including ours and those on an unmounted disk.
          `if it is gone for good: ${unlock}${git(codebase)} worktree remove ${shellWord(path)}`
        : (otherHome?.remedy ?? `track it: coppice worktree adopt ${shellWord(path)}`),
    )
  })

const unreadableRecords = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
): Promise<Finding[]> => {
  const { store, host } = context
  // One being created has a record before its name is known.
  if ((await store.journal.open(host, codebase.id)).length > 0) return []
  const live = await store.environments.live(codebase.id)
  const spares = await store.spares.list(codebase.id)
  const names = new Set([...live, ...spares].flatMap(({ adminName }) => adminName ?? []))
  return (await brokenRecords(codebase, names)).map((dir) =>
    problem(
      codebase.name,
      `git can't read its worktree record ${dir}`,
      `inspect it; if it holds nothing you need: rm -r ${shellWord(dir)}`,
    ),
  )
}
