import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { IsolatedEnvironment } from '../src/domain/environment.ts'
import { toBranchName, toEnvironmentId, toSha } from '../src/domain/names.ts'
import { toWork } from '../src/domain/work.ts'
import { writeToken } from '../src/git/admin-dir.ts'
import { prepareRoot } from '../src/isolation/paths.ts'
import { fastImport } from './plain-git.ts'
import type { Stage, World } from './stage.ts'

/**
 * Adds many environments with branch, git record, directory, token and row, as creation leaves them, but without files:
 * a thousand real checkouts would take minutes and change nothing in what is measured. Every second branch has one
 * commit that isn't on main; main has moved on.
 */
export const populate = async (stage: Stage, world: World, from: number, to: number): Promise<void> => {
  const { context, codebase } = world
  const start = world.raw('rev-parse', 'main~1')
  const numbers = Array.from({ length: to - from }, (_, i) => from + i)
  fastImport(stage.box, world.checkout, numbers.map((number) => branchStream(number, start)).join(''))
  const root = await prepareRoot(context.worktreesBase, codebase.name, context.host)
  for (const number of numbers) {
    const branch = `issue-${number}`
    const path = join(root, codebase.name, branch)
    const adminDir = join(codebase.repoPath, 'worktrees', branch)
    mkdirSync(path, { recursive: true })
    mkdirSync(adminDir, { recursive: true })
    writeFileSync(join(path, '.git'), `gitdir: ${adminDir}\n`)
    writeFileSync(join(adminDir, 'gitdir'), `${join(path, '.git')}\n`)
    writeFileSync(join(adminDir, 'commondir'), '../..\n')
    writeFileSync(join(adminDir, 'HEAD'), `ref: refs/heads/${branch}\n`)
    const environment = row(world, number, path, start)
    await writeToken(adminDir, environment.id)
    await context.store.environments.insert(environment, undefined)
  }
}

const branchStream = (number: number, start: string): string => {
  const ref = `refs/heads/issue-${number}`
  if (number % 2 === 0) return `reset ${ref}\nfrom ${start}\n\n`
  const who = `Ada <ada@example.org> ${Math.floor(Date.now() / 1000)} +0000`
  const file = `M 100644 inline work-${number}.txt\ndata 5\nwork\n\n`
  return `commit ${ref}\ncommitter ${who}\ndata 5\nwork\n\nfrom ${start}\n${file}`
}

const row = ({ context, codebase }: World, number: number, path: string, start: string): IsolatedEnvironment => ({
  id: toEnvironmentId(context.ids()),
  host: context.host,
  codebaseId: codebase.id,
  work: toWork('issue', String(number)),
  provider: 'worktree',
  path,
  branch: toBranchName(`issue-${number}`),
  branchOrigin: 'created',
  status: 'active',
  owned: true,
  createdBy: 'bench',
  createdAt: context.clock(),
  lastActivityAt: context.clock(),
  startSha: toSha(start),
  adminName: `issue-${number}`,
  baseBranch: 'main',
  trust: 'own',
  prNumber: undefined,
  prBranch: undefined,
})
