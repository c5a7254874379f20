import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Dressed, makeDressed } from '../../../test/helpers/provisioned.ts'
import { markerProgram, type TestRepo } from '../../../test/helpers/repo.ts'
import { AppError } from '../../domain/errors.ts'
import type { Merged, MergedPullRequest } from '../../domain/merge-proof.ts'
import { type Sha, toBranchName, toSha } from '../../domain/names.ts'
import type { Git } from '../../git/door.ts'
import type { Base } from '../codebases/base-branch.ts'
import { type BranchQuestion, isItsOwnBase, questionAbout } from './merge-question.ts'
import { describeMerged } from '../../commands/views/merged.ts'
import { mergedMany } from './merged.ts'

let lab: Dressed
let repo: TestRepo
let start: Sha
beforeEach(async () => {
  lab = await makeDressed()
  repo = lab.repo
  repo.commit('lines', numbered(40), 'forty lines')
  start = repo.sha()
})
afterEach(() => lab[Symbol.asyncDispose]())

const numbered = (count: number, change: Record<number, string> = {}): string =>
  Array.from({ length: count }, (_, i) => `${change[i + 1] ?? `line ${i + 1}`}\n`).join('')

const baseAt = (ref = 'main'): Base => ({ name: ref, ref: `refs/heads/${ref}`, sha: repo.sha(ref), branch: ref })

type Asked = { start?: Sha | undefined; borrowed?: boolean; base?: Base; git?: Git }

const ask = async (branch: string, asked: Asked = {}): Promise<Merged> => {
  const { base = baseAt(), git = lab.context.git, borrowed = false } = asked
  const begin = 'start' in asked ? asked.start : start
  const tip = repo.sha(`refs/heads/${branch}`)
  const question = { branch: toBranchName(branch), tip, start: begin, borrowed, startedFrom: 'main' }
  const remote = base.ref.startsWith('refs/remotes/') ? 'origin' : undefined
  const codebase = { ...lab.codebase, remote, github: 'Acme/app' }
  const answers = await mergedMany({ ...lab.context, git }, codebase, [question], base)
  const answer = answers.get(question.branch)
  if (answer === undefined) throw new Error('no answer')
  return answer
}

/** `main`, as the remote has it. */
const origin = (): Base => ({
  name: 'origin/main',
  ref: 'refs/remotes/origin/main',
  sha: repo.sha('refs/heads/main'),
  branch: 'main',
})

/** What the forge said before. */
const said = (merged: Pick<MergedPullRequest, 'headSha' | 'mergeCommit'> & Partial<MergedPullRequest>): Promise<void> =>
  lab.context.store.mergedPullRequests.save(
    lab.codebase.id,
    [{ forge: 'GitHub', repository: 'acme/app', number: 12, baseBranch: 'main', ...merged }],
    1,
  )

const countingGit = (git: Git): { git: Git; runs: () => number } => {
  let runs = 0
  const run: Git['run'] = (call) => {
    runs += 1
    return git.run(call)
  }
  return { git: { ...git, run }, runs: () => runs }
}

/** A branch from here with these commits; afterwards `main` is checked out. */
const branchWith = (name: string, ...commits: [file: string, content: string][]): void => {
  repo.git('checkout', '-q', '-b', name)
  for (const [file, content] of commits) repo.commit(file, content, `${name}: ${file}`)
  repo.git('checkout', '-q', 'main')
}

const squash = (branch: string): Sha => {
  repo.git('merge', '-q', '--squash', branch)
  repo.git('commit', '-q', '-m', `squash of ${branch}`)
  return repo.sha()
}

describe('empty', () => {
  it('is what a fresh branch is, however far base has moved on', async () => {
    branchWith('work')
    expect(await ask('work')).toEqual({ value: 'empty' })
    repo.commit('other', 'x\n')
    expect(await ask('work')).toEqual({ value: 'empty' })
  })

  it('is what a branch is that was merely fast-forwarded along base', async () => {
    branchWith('work')
    repo.commit('other', 'x\n')
    repo.git('checkout', '-q', 'work')
    repo.git('merge', '-q', '--ff-only', 'main')
    repo.git('checkout', '-q', 'main')
    expect(await ask('work')).toEqual({ value: 'empty' })
    repo.commit('other', 'y\n')
    expect(await ask('work')).toEqual({ value: 'empty' })
    // git cherry shows nothing to do for it, which would make it merged.
    expect(repo.git('cherry', 'main', 'work')).toBe('')
  })

  it('is what a branch is after a rebase that had nothing to carry over', async () => {
    branchWith('work')
    repo.commit('other', 'x\n')
    repo.git('checkout', '-q', 'work')
    repo.git('rebase', '-q', 'main')
    expect(await ask('work')).toEqual({ value: 'empty' })
  })

  it('is what a branch is whose only commit was thrown away again', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('branch', '-f', 'work', start)
    repo.commit('other', 'x\n')
    repo.git('branch', '-f', 'work', 'main')
    expect(await ask('work')).toEqual({ value: 'empty' })
  })

  it('is known without a record of the start from a reflog that reaches back to the making of the branch', async () => {
    branchWith('work')
    repo.commit('other', 'x\n')
    expect(await ask('work', { start: undefined })).toEqual({ value: 'empty' })
  })

  it('is never said of commits that base does not have', async () => {
    branchWith('feature', ['a', 'a\n'])
    expect(await ask('feature', { start: repo.sha('feature') })).toEqual({ value: 'no', own: 1 })
  })
})

describe('ancestor', () => {
  it('proves a branch that was merged with a merge commit', async () => {
    branchWith('work', ['a', 'a\n'], ['b', 'b\n'])
    repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'work')
    repo.commit('other', 'x\n')
    expect(await ask('work')).toEqual({ value: 'yes', proof: 'ancestor', base: 'main' })
    rmSync(join(repo.commonDir, 'logs'), { recursive: true })
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'ancestor' })
  })

  it('proves a branch that base was fast-forwarded to', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('merge', '-q', '--ff-only', 'work')
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'ancestor' })
    repo.commit('other', 'x\n')
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'ancestor' })
  })

  it('proves a branch that was rebased and then fast-forwarded to', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.commit('other', 'x\n')
    repo.git('checkout', '-q', 'work')
    repo.git('rebase', '-q', 'main')
    repo.git('checkout', '-q', 'main')
    repo.git('merge', '-q', '--ff-only', 'work')
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'ancestor' })
  })

  it('sees a branch that is checked out in a worktree, which `git branch --merged` marks with a plus sign', async () => {
    const { tree } = await lab.another('elsewhere')
    lab.box.raw(tree.path, 'commit', '-q', '--allow-empty', '-m', 'made here')
    repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'elsewhere')
    expect(repo.git('branch', '--merged', 'main')).toContain('+ elsewhere')
    expect(await ask('elsewhere')).toMatchObject({ value: 'yes', proof: 'ancestor' })
  })

  it('cannot be told from empty when the reflog is gone and base runs through the tip', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('merge', '-q', '--ff-only', 'work')
    rmSync(join(repo.commonDir, 'logs', 'refs', 'heads', 'work'))
    expect(await ask('work')).toMatchObject({ value: 'cannot-tell', why: { kind: 'reflog-silent' } })
  })

  it('cannot be told from empty when the branch was moved in a way the reflog does not explain', async () => {
    branchWith('work')
    repo.commit('other', 'x\n')
    repo.git('update-ref', 'refs/heads/work', 'main')
    expect(await ask('work')).toMatchObject({ value: 'cannot-tell' })
  })

  it('cannot be told from empty when the reflog does not reach back to the start', async () => {
    branchWith('work')
    repo.commit('other', 'x\n')
    repo.git('branch', '-f', 'work', 'main')
    const log = join(repo.commonDir, 'logs', 'refs', 'heads', 'work')
    repo.commit('other', 'y\n')
    repo.git('branch', '-f', 'work', 'main')
    writeFileSync(log, readFileSync(log, 'utf8').trimEnd().split('\n').slice(-1).join('\n') + '\n')
    expect(await ask('work')).toMatchObject({ value: 'cannot-tell' })
  })

  it('cannot be told from empty for a pull request whose commits others made and base was fast-forwarded to', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('branch', 'pr-7', 'work')
    repo.git('merge', '-q', '--ff-only', 'work')
    const asked = { start: repo.sha('pr-7'), borrowed: true }
    expect(await ask('pr-7', asked)).toMatchObject({ value: 'cannot-tell' })
    await said({ headSha: repo.sha('pr-7'), mergeCommit: repo.sha('main') })
    expect(await ask('pr-7', { ...asked, base: origin() })).toMatchObject({ value: 'yes', proof: 'forge' })
  })

  it('proves a pull request that base took in by a merge', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('branch', 'pr-7', 'work')
    repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'work')
    const asked = { start: repo.sha('pr-7'), borrowed: true }
    expect(await ask('pr-7', asked)).toMatchObject({ value: 'yes', proof: 'ancestor' })
  })
})

describe('same tree', () => {
  it('proves a branch whose content base has, though no commit is the same', async () => {
    branchWith('work', ['a', 'a\n'], ['b', 'b\n'])
    squash('work')
    expect(repo.git('cherry', 'main', 'work')).toContain('+ ')
    expect(await ask('work')).toEqual({ value: 'yes', proof: 'same-tree', base: 'main' })
  })

  it('proves a branch whose own commits cancel out', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('checkout', '-q', 'work')
    repo.git('revert', '--no-edit', 'HEAD')
    repo.git('checkout', '-q', 'main')
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'same-tree' })
    repo.commit('other', 'x\n')
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'merge-changes-nothing' })
  })

  it('proves a commit whose message alone was amended after it landed, but not one whose content was', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('merge', '-q', '--ff-only', 'work')
    repo.git('checkout', '-q', 'work')
    repo.git('commit', '-q', '--amend', '-m', 'better words')
    repo.git('checkout', '-q', 'main')
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'same-tree' })
    repo.git('checkout', '-q', 'work')
    repo.write('a', 'b\n')
    repo.git('commit', '-q', '-a', '--amend', '-m', 'better content')
    repo.git('checkout', '-q', 'main')
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })
})

const hostileSettings = [
  ['merge.default', 'union'],
  ['merge.renames', 'copies'],
  ['merge.directoryRenames', 'true'],
  ['merge.renormalize', 'true'],
  ['diff.algorithm', 'patience'],
  ['diff.renames', 'copies'],
  ['diff.noprefix', 'true'],
  ['diff.relative', 'true'],
  ['diff.external', 'true'],
  ['log.follow', 'true'],
  ['log.diffMerges', 'off'],
  ['i18n.logOutputEncoding', 'UTF-16'],
  ['core.useReplaceRefs', 'true'],
] as const

describe('merging changes nothing', () => {
  it('proves a rebased-and-merged branch and a squashed one after base has moved on', async () => {
    branchWith('work', ['a', 'a\n'], ['lines', numbered(40, { 5: 'five' })])
    repo.commit('other', 'x\n')
    repo.git('cherry-pick', 'main..work')
    repo.commit('other', 'y\n')
    expect(await ask('work')).toEqual({
      value: 'yes',
      proof: 'merge-changes-nothing',
      base: 'main',
    })
  })

  it('is not what a landed-then-reverted change does', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'five' })])
    repo.commit('other', 'x\n')
    squash('work')
    expect(await ask('work')).toMatchObject({ value: 'yes' })
    repo.git('revert', '--no-edit', 'HEAD')
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    repo.git('revert', '--no-edit', 'HEAD')
    expect(await ask('work')).toMatchObject({ value: 'yes' })
  })

  it('is right across criss-cross merges', async () => {
    branchWith('work', ['a', 'a\n'])
    const left = repo.commit('other', 'x\n')
    const right = repo.sha('work')
    repo.git('merge', '-q', '--no-ff', '-m', 'one way', right)
    repo.git('checkout', '-q', 'work')
    repo.git('merge', '-q', '--no-ff', '-m', 'the other way', left)
    repo.commit('b', 'b\n')
    repo.git('checkout', '-q', 'main')
    repo.commit('c', 'c\n')
    expect(repo.git('merge-base', '--all', 'main', 'work').split('\n')).toHaveLength(2)
    expect(await ask('work')).toEqual({ value: 'no', own: 2 })
    repo.git('checkout', 'work', '--', 'b')
    repo.git('commit', '-q', '-m', 'took b')
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'merge-changes-nothing' })
  })

  it('runs no merge driver of the repository, and believes none', async () => {
    const marker = lab.box.path('ran')
    const driver = markerProgram(lab.box.path('driver'), marker, 'exit 0')
    repo.git('config', 'merge.quiet.driver', `${driver} %A`)
    branchWith('work', ['lines', numbered(40, { 5: 'mine' })])
    repo.commit('lines', numbered(40, { 5: 'theirs' }))
    mkdirSync(join(repo.commonDir, 'info'), { recursive: true })
    writeFileSync(join(repo.commonDir, 'info', 'attributes'), '* merge=quiet\n')
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    expect(existsSync(marker)).toBe(false)
    // Plain git would have run it, and found that merging changes nothing.
    expect(repo.git('merge-tree', '--write-tree', 'main', 'work')).toBe(repo.git('rev-parse', 'main^{tree}'))
    expect(existsSync(marker)).toBe(true)
  })

  it('is the same whatever the settings say about merges, differences, logs and history', async () => {
    branchWith('landed', ['lines', numbered(40, { 20: 'landed' })])
    branchWith('open', ['lines', numbered(40).replace('line 5\n', '')])
    squash('landed')
    repo.commit('lines', numbered(40, { 5: 'theirs', 20: 'landed' }))
    for (const [key, value] of hostileSettings) repo.git('config', key, value)
    // Each makes plain git find the open branch in main.
    const [main, open] = [repo.sha('main'), repo.sha('open')]
    repo.git('update-ref', `refs/replace/${open}`, main)
    writeFileSync(join(repo.commonDir, 'info', 'grafts'), `${main} ${start} ${open}\n`)
    expect(await ask('landed')).toMatchObject({ value: 'yes' })
    expect(await ask('open')).toEqual({ value: 'no', own: 1 })
  })

  it("believes no merge driver of the user's own either", async () => {
    lab.box.raw(repo.path, 'config', '--global', 'merge.ours.driver', 'true')
    branchWith('work', ['lines', numbered(40, { 5: 'mine' })])
    repo.commit('lines', numbered(40, { 5: 'theirs' }))
    mkdirSync(join(repo.commonDir, 'info'), { recursive: true })
    writeFileSync(join(repo.commonDir, 'info', 'attributes'), '* merge=ours\n')
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    rmSync(join(repo.commonDir, 'info', 'attributes'))
    mkdirSync(join(lab.box.home, '.config', 'git'), { recursive: true })
    writeFileSync(join(lab.box.home, '.config', 'git', 'attributes'), '* merge=ours\n')
    repo.commit('other', 'y\n')
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })

  it('does not take a union merge, in which a removed line quietly comes back, for nothing', async () => {
    branchWith('work', ['lines', numbered(40).replace('line 5\n', '')])
    repo.commit('lines', numbered(40, { 5: 'theirs' }))
    mkdirSync(join(repo.commonDir, 'info'), { recursive: true })
    writeFileSync(join(repo.commonDir, 'info', 'attributes'), 'lines merge=union\n')
    expect(repo.git('merge-tree', '--write-tree', 'main', 'work')).toBe(repo.git('rev-parse', 'main^{tree}'))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })
})

describe('squash', () => {
  it('is not proven by a merge driver, which gives whatever it likes', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'mine' })])
    repo.commit('lines', numbered(40, { 5: 'theirs' }))
    repo.commit('lines', numbered(40, { 5: 'theirs\nmine' }))
    repo.commit('lines', numbered(40, { 5: 'neither' }))
    mkdirSync(join(repo.commonDir, 'info'), { recursive: true })
    writeFileSync(join(repo.commonDir, 'info', 'attributes'), 'lines merge=union\n')
    expect(repo.git('merge-tree', '--write-tree', 'main~2', 'work')).toBe(repo.git('rev-parse', 'main~1^{tree}'))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })

  it('is found after base changed the same lines again', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'five' })], ['lines', numbered(40, { 5: 'five', 6: 'six' })])
    repo.commit('other', 'x\n')
    const landed = squash('work')
    repo.commit('lines', numbered(40, { 5: 'FIVE', 6: 'six' }))
    expect(await ask('work')).toEqual({
      value: 'yes',
      proof: 'squash',
      base: 'main',
      commit: landed,
    })
  })

  it('is found where other lines of the file had moved before it landed', async () => {
    branchWith('work', ['lines', numbered(40, { 20: 'twenty' })])
    repo.commit('lines', `new\n${numbered(40)}`)
    const landed = squash('work')
    repo.commit('lines', `new\n${numbered(40, { 20: 'TWENTY' })}`)
    expect(await ask('work')).toMatchObject({ proof: 'squash', base: 'main', commit: landed })
  })

  it('is found as the first-parent difference of a merge', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'five' })], ['lines', numbered(40, { 5: 'five', 6: 'six' })])
    repo.git('checkout', '-q', '-b', 'copy')
    repo.git('cherry-pick', 'main..work')
    repo.git('checkout', '-q', 'main')
    repo.commit('other', 'x\n')
    repo.git('checkout', '-q', 'copy')
    repo.git('rebase', '-q', 'main')
    repo.git('checkout', '-q', 'main')
    repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'copy')
    const landed = repo.sha()
    repo.commit('lines', numbered(40, { 5: 'FIVE', 6: 'SIX' }))
    expect(await ask('work')).toMatchObject({ proof: 'squash', base: 'main', commit: landed })
  })

  it('takes two indentations of one Python line for two patches', async () => {
    const python = (indent: string, by: string): string => `def f():\n    if a:\n        b()\n${indent}${by}()\n`
    repo.commit('f.py', python('    ', 'old'))
    start = repo.sha()
    branchWith('work', ['f.py', python('        ', 'c')])
    repo.commit('f.py', python('    ', 'c'))
    repo.commit('f.py', python('    ', 'd'))
    const id = (range: string): string => {
      writeFileSync(lab.box.path('patch'), `${repo.git('diff', range)}\n`)
      return lab.box.raw(repo.path, '-c', 'alias.id=!git patch-id <../patch', 'id').split(' ')[0] ?? ''
    }
    // What git compares unless told otherwise calls them one.
    expect(id('main~2..work')).toBe(id('main~2..main~1'))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })

  it('takes two binary changes of one file for two patches', async () => {
    const binary = (fill: number): string => Buffer.from([0, 1, 2, fill]).toString('latin1')
    repo.commit('bin', binary(1))
    start = repo.sha()
    branchWith('work', ['bin', binary(2)])
    repo.commit('bin', binary(3))
    repo.commit('bin', binary(4))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    repo.commit('bin', binary(1))
    const landed = repo.commit('bin', binary(2))
    repo.commit('bin', binary(5))
    expect(await ask('work')).toMatchObject({ proof: 'squash', base: 'main', commit: landed })
  })

  it('takes a change of mode for part of the patch', async () => {
    repo.git('checkout', '-q', '-b', 'work')
    repo.write('lines', numbered(40, { 5: 'five' }))
    repo.git('update-index', '--chmod=+x', 'lines')
    repo.git('add', 'lines')
    repo.git('update-index', '--chmod=+x', 'lines')
    repo.git('commit', '-q', '-m', 'both')
    repo.git('checkout', '-q', '-f', 'main')
    repo.commit('lines', numbered(40, { 5: 'five' }))
    repo.commit('lines', numbered(40, { 5: 'FIVE' }))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })

  it('is not part of a branch: every path counts', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'five' })], ['zzz', 'more\n'])
    repo.commit('lines', numbered(40, { 5: 'five' }))
    repo.commit('lines', numbered(40, { 5: 'FIVE' }))
    expect(await ask('work')).toEqual({ value: 'no', own: 2 })
  })

  it('does not count once it was reverted, whether exactly, by its name, or path by path', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'five', 30: 'thirty' })])
    repo.commit('other', 'x\n')
    const landed = squash('work')
    repo.commit('lines', numbered(40, { 4: 'four', 5: 'five', 30: 'thirty' }))
    expect(await ask('work')).toMatchObject({ value: 'yes' })
    repo.commit('lines', numbered(40, { 4: 'four', 5: 'FIVE', 30: 'thirty' }))
    expect(await ask('work')).toMatchObject({ proof: 'squash' })
    repo.commit('lines', numbered(40, { 4: 'four', 29: 'x' }), `Undo\n\nThis reverts commit ${landed}.`)
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })

  it('does not count once its path is again as it was, whatever the words', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'five' })], ['zzz', 'more\n'])
    repo.commit('other', 'x\n')
    squash('work')
    repo.commit('zzz', 'changed\n')
    expect(await ask('work')).toMatchObject({ proof: 'squash' })
    repo.commit('lines', numbered(40), 'never mind')
    expect(await ask('work')).toEqual({ value: 'no', own: 2 })
  })

  it('does not count once another commit took exactly this patch back, and counts when it came again', async () => {
    branchWith('work', ['lines', numbered(40, { 5: 'five' })])
    repo.commit('other', 'x\n')
    squash('work')
    repo.commit('lines', numbered(40, { 5: 'five', 30: 'thirty' }))
    repo.commit('lines', numbered(40, { 30: 'thirty' }), 'never mind')
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    const again = repo.commit('lines', numbered(40, { 5: 'five', 30: 'thirty' }), 'do mind')
    repo.commit('lines', numbered(40, { 5: 'FIVE', 30: 'thirty' }))
    expect(await ask('work')).toMatchObject({ proof: 'squash', base: 'main', commit: again })
  })

  const block = (name: string, added = ''): string => `${name} {\n  a\n  b\n  c\n  d\n${added}  e\n  f\n  g\n  h\n}\n`
  const blocks = (first: string, second: string): string => `${block('one', first)}${block('two', second)}`

  it('compares where a line was added, not only which: the same line in another, identical block is no proof', async () => {
    repo.commit('twins', blocks('', ''))
    start = repo.sha()
    branchWith('work', ['twins', blocks('', '  x\n')])
    repo.commit('twins', blocks('  x\n', ''))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    repo.commit('twins', `top\n${blocks('  x\n', '')}`)
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    squash('work')
    repo.commit('twins', `top\n${blocks('  x\n', '  y\n')}`)
    expect(await ask('work')).toMatchObject({ proof: 'squash' })
    repo.commit('twins', `top\n${blocks('', '  y\n')}`, 'takes back the line of the other block')
    expect(await ask('work')).toMatchObject({ proof: 'squash' })
  })

  it('compares the path, too: a file that was deleted is not the renamed copy of its twin', async () => {
    repo.commit('left', numbered(40))
    repo.commit('right', numbered(40))
    start = repo.sha()
    for (const [mine, gone] of [
      ['right', 'left'],
      ['left', 'right'],
    ] as const) {
      repo.git('checkout', '-q', '-B', 'main', start)
      branchWith(`work-${mine}`, [mine, numbered(40, { 5: 'five' })])
      repo.git('mv', gone, 'moved')
      repo.git('rm', '-q', mine)
      repo.commit('moved', numbered(40, { 5: 'five' }))
      expect(await ask(`work-${mine}`)).toEqual({ value: 'no', own: 1 })
    }
  })

  it('is not proven by a merge that the repository says to make in another way', async () => {
    repo.git('config', 'merge.default', 'union')
    branchWith('work', ['lines', numbered(40).replace('line 5\n', '')])
    repo.commit('lines', numbered(40, { 5: 'theirs' }))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    repo.git('config', '--unset', 'merge.default')
    mkdirSync(join(repo.commonDir, 'info'), { recursive: true })
    writeFileSync(join(repo.commonDir, 'info', 'attributes'), 'lines merge=union\n')
    repo.commit('lines', numbered(40, { 5: 'theirs', 30: 'x' }))
    repo.commit('lines', numbered(40, { 5: 'theirs' }))
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })

  it('is found for names that are no plain text', async () => {
    repo.git('checkout', '-q', '-b', 'work')
    repo.write(':(top)x*', 'two\n')
    repo.git('--literal-pathspecs', 'add', ':(top)x*')
    repo.commit('dïr/tab\there', 'one\n')
    repo.git('checkout', '-q', 'main')
    repo.commit('other', 'x\n')
    squash('work')
    repo.commit('dïr/tab\there', 'two\n')
    expect(await ask('work')).toMatchObject({ proof: 'squash' })
  })
})

describe('no', () => {
  it('counts the commits that base does not have', async () => {
    branchWith('work', ['a', 'a\n'], ['b', 'b\n'])
    const answer = await ask('work')
    expect(answer).toEqual({ value: 'no', own: 2 })
    expect(describeMerged(answer, 'main')).toBe('2 commits not on main')
  })

  it('is the answer for unrelated histories, unless the content is the same', async () => {
    repo.git('checkout', '-q', '--orphan', 'work')
    repo.commit('alone', 'a\n')
    const same = repo.git('commit-tree', '-m', 'same', 'main^{tree}')
    repo.git('branch', 'same', same)
    repo.git('checkout', '-q', '-f', 'main')
    expect(await ask('work')).toMatchObject({ value: 'no' })
    expect(await ask('same')).toMatchObject({ value: 'yes', proof: 'same-tree' })
  })

  it('is the answer for a branch that went on after it was merged', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'work')
    repo.git('checkout', '-q', 'work')
    repo.commit('a', 'b\n')
    repo.git('checkout', '-q', 'main')
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
  })
})

describe('the forge', () => {
  /** Merged by squash, with an edit on the way: git has no proof. */
  const squashEdited = (): Sha => {
    branchWith('work', ['a', 'a\n'], ['b', 'b\n'])
    repo.commit('a', 'a, edited by the reviewer\n', 'Add a (#12)')
    return repo.sha()
  }

  it('proves a squash with later edits, by the head of a pull request that base has, and names it', async () => {
    const mergeCommit = squashEdited()
    repo.commit('other', 'x\n', 'Reverts acme/app#123')
    const another = `${mergeCommit.slice(0, 7)}${mergeCommit[7] === '0' ? '1' : '0'}`
    repo.commit('other', 'y\n', `Revert "Add a better a (#11)"\n\nThis reverts commit ${another}.`)
    expect(await ask('work', { base: origin() })).toEqual({ value: 'no', own: 2 })
    await said({ headSha: repo.sha('work'), mergeCommit })
    const pullRequest = { forge: 'GitHub', number: 12 }
    const proven = { value: 'yes', proof: 'forge', base: 'origin/main', commit: repo.sha('work'), pullRequest } as const
    expect(await ask('work', { base: origin() })).toEqual(proven)
    expect(describeMerged(proven, 'main')).toBe('merged: PR #12 on GitHub')
    // From then on a fact about commits, which starts no process.
    const counted = countingGit(lab.context.git)
    expect(await ask('work', { base: origin(), git: counted.git })).toEqual(proven)
    expect(counted.runs()).toBe(0)
    // One commit more, and it is other work.
    repo.git('checkout', '-q', 'work')
    repo.commit('c', 'c\n')
    expect(await ask('work', { base: origin() })).toEqual({ value: 'no', own: 3 })
  })

  const notProven: Record<string, (mergeCommit: Sha) => Partial<MergedPullRequest> | undefined> = {
    'another head': () => ({ headSha: repo.sha('work~1') }),
    'another repository': () => ({ repository: 'other/app' }),
    'another base branch': () => ({ baseBranch: 'release' }),
    'a merge that base no longer has': () => {
      repo.git('reset', '-q', '--hard', 'HEAD~1')
      repo.commit('other', 'x\n')
      return undefined
    },
    'a merge commit that nobody has fetched': () => ({ mergeCommit: toSha('ab'.repeat(20)) }),
    'a merge that was reverted': (mergeCommit) => {
      repo.git('revert', '--no-edit', mergeCommit)
      return undefined
    },
    'a merge that a pull request reverted': () => {
      repo.commit('a', '', 'Undo a (#13)\n\nReverts Acme/app#12.')
      return undefined
    },
    'a merge that a pull request reverted whose squash kept only the title': () => {
      repo.commit('a', '', 'Revert "Add a" (#13)')
      return undefined
    },
    'a merge that was reverted by its short hash': (mergeCommit) => {
      repo.commit('a', '', `Undo\n\nThis reverts commit ${mergeCommit.slice(0, 8)} (Add a (#12), 2026-01-02).`)
      return undefined
    },
  }
  it.each(Object.entries(notProven))('proves nothing by %s', async (_, arrange) => {
    const mergeCommit = squashEdited()
    await said({ headSha: repo.sha('work'), mergeCommit, ...arrange(mergeCommit) })
    expect(await ask('work', { base: origin() })).toEqual({ value: 'no', own: 2 })
  })

  it('proves nothing without a remote to ask for base, and nothing about a branch that is base itself', async () => {
    const mergeCommit = squashEdited()
    await said({ headSha: repo.sha('work'), mergeCommit })
    await said({ headSha: repo.sha('main'), mergeCommit })
    expect(await ask('work')).toEqual({ value: 'no', own: 2 })
    expect(await ask('main', { base: origin() })).toMatchObject({ value: 'cannot-tell', why: { kind: 'own-base' } })
  })
})

describe('base', () => {
  it('is the fetched one of the remote, not the stale local one', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('checkout', '-q', '--detach')
    repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'work')
    const remote = { name: 'origin/main', ref: 'refs/remotes/origin/main', sha: repo.sha(), branch: 'main' }
    repo.git('checkout', '-q', 'main')
    expect(await ask('work')).toMatchObject({ value: 'no' })
    const answer = await ask('work', { base: remote })
    expect(answer).toMatchObject({ value: 'yes', proof: 'ancestor' })
    expect(describeMerged(answer, 'main')).toBe('merged: ancestor of origin/main')
  })
})

describe('its own branch is no base', () => {
  const own = { branch: toBranchName('pr-7'), prNumber: 7, prBranch: 'x', startSha: undefined }
  it.each([
    ['refs/heads/pr-7', {}, true],
    ['refs/remotes/origin/pr-7', {}, true],
    ['refs/remotes/upstream/x', {}, true],
    ['refs/heads/pr-7/x7', {}, false],
    ['refs/heads/my-pr-7', {}, false],
    ['refs/remotes/origin/main', {}, false],
    // A fork's own `main` is another branch than ours.
    ['refs/remotes/origin/main', { branch: toBranchName('pr-7-review'), prBranch: 'main' }, false],
  ])('%s, with %j: %s', (ref, more, expected) => {
    const question = questionAbout({ ...lab.environment, ...own, ...more }, start)
    expect(isItsOwnBase(question, { ref })).toBe(expected)
  })
})

describe('cannot tell', () => {
  /** Every git call whose operation is the given one fails. */
  const failing = (operation: string): Git => ({
    ...lab.context.git,
    run: (request) =>
      request.operation === operation
        ? Promise.reject(new AppError('git-failed', `git ${operation} broke`))
        : lab.context.git.run(request),
  })

  it.each(['rev-list', 'cat-file', 'merge-base', 'merge-tree', 'diff-tree', 'log'])(
    'is the answer, and is not remembered, when git %s fails on the way',
    async (operation) => {
      branchWith('work', ['lines', numbered(40, { 5: 'five' })], ['zzz', 'more\n'])
      repo.commit('other', 'x\n')
      squash('work')
      repo.commit('zzz', 'changed\n')
      expect(await ask('work', { git: failing(operation) })).toMatchObject({ value: 'cannot-tell' })
      expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'squash' })
    },
  )

  it('is the answer for a branch within base when the way there cannot be read', async () => {
    branchWith('work', ['a', 'a\n'])
    repo.git('merge', '-q', '--ff-only', 'work')
    expect(await ask('work', { git: failing('rev-list') })).toMatchObject({ value: 'cannot-tell' })
    expect(describeMerged(await ask('work', { git: failing('rev-list') }), 'main')).toMatch(/^cannot tell whether/)
    const log = join(repo.commonDir, 'logs', 'refs', 'heads', 'work')
    rmSync(log)
    mkdirSync(log)
    expect(await ask('work')).toMatchObject({ value: 'cannot-tell' })
  })

  it('is the answer for the one branch that git stumbles over, and the others have theirs', async () => {
    branchWith('work', ['a', 'a\n'])
    branchWith('broken', ['b', 'b\n'])
    repo.commit('other', 'x\n')
    const tree = repo.sha('broken^{tree}')
    rmSync(join(repo.commonDir, 'objects', tree.slice(0, 2), tree.slice(2)))
    const questions = ['work', 'broken'].map((name) => ({ branch: toBranchName(name), tip: repo.sha(name), start }))
    const answers = await mergedMany(lab.context, lab.codebase, questions, baseAt())
    expect(answers.get(toBranchName('work'))).toEqual({ value: 'no', own: 1 })
    expect(answers.get(toBranchName('broken'))).toMatchObject({ value: 'cannot-tell' })
  })
})

describe('many branches', () => {
  const questionsOf = (names: readonly string[]): BranchQuestion[] =>
    names.map((name) => ({ branch: toBranchName(name), tip: repo.sha(name), start }))

  it('cost a constant number of processes when nothing has changed', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `work-${i}`)
    for (const [i, name] of names.entries()) {
      if (i % 3 === 0) branchWith(name)
      else branchWith(name, [name, 'x\n'])
      if (i % 3 === 1) repo.git('merge', '-q', '--no-ff', '-m', 'merge', name)
    }
    repo.commit('other', 'x\n')
    const questions = questionsOf(names)
    const spawns = async (few: readonly BranchQuestion[]): Promise<number> => {
      const before = lab.context.git.spawned()
      await mergedMany(lab.context, lab.codebase, few, baseAt())
      return lab.context.git.spawned() - before
    }
    await spawns(questions)
    const first = await mergedMany(lab.context, lab.codebase, questions, baseAt())
    expect(names.map((name) => first.get(toBranchName(name))?.value)).toEqual(
      names.map((_, i) => ['empty', 'yes', 'no'][i % 3]),
    )
    expect(await spawns(questions)).toBe(await spawns(questions.slice(0, 3)))
    expect(await spawns(questions)).toBeLessThanOrEqual(6)
  })

  it('that are open cost a constant number of processes when base has moved', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `work-${i}`)
    for (const [i, name] of names.entries()) {
      branchWith(name, [name, 'x\n'])
      // Half of them start from a later commit than the others.
      if (i === 3) start = repo.commit('between', 'x\n')
    }
    let moves = 0
    const ask = async (some: readonly string[]): Promise<number> => {
      repo.commit('other', `${(moves += 1)}\n`)
      const before = lab.context.git.spawned()
      const answers = await mergedMany(lab.context, lab.codebase, questionsOf(some), baseAt())
      expect([...answers.values()]).toEqual(some.map(() => ({ value: 'no', own: 1 })))
      return lab.context.git.spawned() - before
    }
    await ask(names)
    expect(await ask(names)).toBe(await ask(names.slice(2, 5)))
    expect(await ask(names)).toBeLessThanOrEqual(7)
  })

  it('with what is known already start no process at all', async () => {
    branchWith('work', ['a', 'a\n'])
    await ask('work')
    const before = lab.context.git.spawned()
    expect(await ask('work')).toEqual({ value: 'no', own: 1 })
    expect(lab.context.git.spawned()).toBe(before)
  })

  it('are not answered from what a reflog said before it changed', async () => {
    branchWith('work')
    repo.commit('other', 'x\n')
    repo.git('branch', '-f', 'work', 'main')
    expect(await ask('work')).toEqual({ value: 'empty' })
    const log = join(repo.commonDir, 'logs', 'refs', 'heads', 'work')
    const tip = repo.sha('work')
    appendFileSync(log, `${start} ${tip} Ada <ada@example.org> 1700000000 +0000\tcommit: made after all\n`)
    expect(await ask('work')).toMatchObject({ value: 'yes', proof: 'ancestor' })
  })

  it('forget what was found about an older base', async () => {
    branchWith('work', ['a', 'a\n'])
    const old = baseAt()
    await ask('work')
    repo.commit('other', 'x\n')
    await ask('work')
    expect(await lab.context.store.mergeAnswers.find(lab.codebase.id, old.sha)).toEqual([])
    expect(await lab.context.store.mergeAnswers.find(lab.codebase.id, baseAt().sha)).toHaveLength(1)
  })
})
