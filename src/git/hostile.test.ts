import { execFile, execFileSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { markerProgram, makeSandbox, type Sandbox, type TestRepo, writeIn } from '../../test/helpers/repo.ts'
import { toBranchName } from '../domain/names.ts'
import { hashFiles } from './blobs.ts'
import { changesBetween } from './changes.ts'
import { checkOutHead } from './checkout.ts'
import type { Git, Tree } from './door.ts'
import { fetchRemote } from './fetch.ts'
import { readIndexState } from './hidden.ts'
import { mergeTrees } from './merge-trees.ts'
import { listRefs, resolveCommit, updateRefs } from './refs.ts'
import { readStatus } from './status.ts'
import { initSubmodules } from './submodule.ts'
import { treePath } from './tree-path.ts'
import { treesOf } from './trees.ts'
import { type AddWorktree, addWorktree } from './worktree-add.ts'

/*
 * What an agent can plant in the repository, in its worktree's own configuration or in its directory. Each test first
 * shows that plain git runs it (or believes it), so that it can fail, and then that none of our calls does.
 */

let box: Sandbox
let repo: TestRepo
let tree: Tree
let git: Git
let program: string
beforeEach(() => {
  box = makeSandbox()
  repo = box.repo()
  tree = repo.worktree('w', '-b', 'w')
  git = box.git()
  program = markerProgram(box.path('evil'), box.path('ran'))
})
afterEach(() => box[Symbol.dispose]())

const ran = (): boolean => existsSync(box.path('ran'))
const forget = (): void => rmSync(box.path('ran'), { force: true })
/** Plain git, whether it succeeds or not. */
const plainly = (cwd: string, ...args: string[]): void => {
  try {
    box.raw(cwd, ...args)
  } catch {
    // What counts is what it ran.
  }
}
const expectPlainGitRunsIt = (cwd: string, ...args: string[]): void => {
  plainly(cwd, ...args)
  expect(ran()).toBe(true)
  forget()
}

/** Everything we ever do with a worktree that is an agent's. */
const everything = async (): Promise<void> => {
  const head = await resolveCommit(git, tree, 'HEAD')
  await readStatus(git, tree)
  await readIndexState(git, tree)
  await listRefs(git, repo, ['refs/heads'])
  await hashFiles(git, tree, [treePath(Buffer.from('README'))])
  if (head === undefined) throw new Error('no head')
  await changesBetween(git, repo, repo.sha('main'), head, { maxBytes: 1_000_000 })
  await mergeTrees(git, repo, [{ into: repo.sha('main'), tip: head }])
  await updateRefs(git, repo, [{ create: 'refs/heads/made', to: head }], { reason: 'test' })
  const path = box.path('another')
  await addWithFiles({ path, branch: { create: toBranchName('new') }, at: head, lockReason: 'r' })
}

const addWithFiles = async (add: AddWorktree): Promise<Tree> => {
  const added = await addWorktree(git, repo, add)
  await checkOutHead(git, added)
  return added
}

const expectNothingRan = async (): Promise<void> => {
  await everything()
  expect(ran()).toBe(false)
}

describe('programs named in the configuration do not run', () => {
  it('core.fsmonitor', async () => {
    repo.git('config', 'core.fsmonitor', program)
    expectPlainGitRunsIt(tree.path, 'status')
    await expectNothingRan()
  })

  it('core.hooksPath', async () => {
    repo.git('config', 'core.hooksPath', box.path('hooks'))
    writeIn(box.path('hooks'), 'x', '')
    for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change']) {
      markerProgram(box.path('hooks', hook), box.path('ran'))
    }
    expectPlainGitRunsIt(tree.path, 'checkout', '-q', '--detach')
    await expectNothingRan()
  })

  it('hooks in .git/hooks', async () => {
    writeIn(join(repo.commonDir, 'hooks'), 'x', '')
    for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change']) {
      markerProgram(join(repo.commonDir, 'hooks', hook), box.path('ran'))
    }
    expectPlainGitRunsIt(tree.path, 'checkout', '-q', '--detach')
    await expectNothingRan()
  })

  it('hook.*.command', async () => {
    // Git 2.54 runs these for every event that they name, except if `enabled` is false (git-hook(1)).
    const newer = box.path('git-2.54')
    const hooks = `for key in $(git config --name-only --get-regexp '^hook\\..*\\.command$'); do
      [ "$(git config "\${key%.command}.enabled")" = false ] || sh -c "$(git config "$key")"
    done`
    writeFileSync(newer, `#!/bin/sh\ncase " $* " in *' config '*) ;; *) ${hooks} ;; esac\nexec git "$@"\n`, {
      mode: 0o755,
    })
    for (const [scope, name] of [
      ['--local', 'evil'],
      ['--global', 'Own.one'],
    ] as const) {
      repo.git('config', scope, `hook.${name}.command`, program)
      repo.git('config', scope, `hook.${name}.event`, 'reference-transaction')
    }
    repo.git('config', 'hook.evil.enabled', 'true')
    execFileSync(newer, ['status'], { cwd: tree.path, env: box.env })
    expect(ran()).toBe(true)
    forget()
    git = box.git({ program: newer })
    await expectNothingRan()
  })

  it.each(['clean', 'smudge', 'process'])('filter.*.%s', async (kind) => {
    repo.git('config', `filter.x.${kind}`, kind === 'process' ? `${program} %f` : program)
    repo.git('config', 'filter.x.required', 'true')
    box.raw(tree.path, '-c', 'filter.x.clean=cat', '-c', 'filter.x.process=', 'rm', '-q', '--cached', 'README')
    writeIn(tree.path, '.gitattributes', 'README filter=x\n')
    const quiet = ['-c', `filter.x.${kind}=`, '-c', 'filter.x.required=false']
    box.raw(tree.path, ...quiet, 'add', '.')
    box.raw(tree.path, ...quiet, 'commit', '-qm', 'attributes')
    writeIn(tree.path, 'README', 'touched\n')
    plainly(tree.path, 'add', '-n', 'README')
    plainly(tree.path, 'status')
    expectPlainGitRunsIt(tree.path, 'checkout', '--', 'README')
    writeIn(tree.path, 'README', 'hellO\n')
    await expectNothingRan()
    expect(box.raw(box.path('another'), ...quiet, 'status', '--porcelain')).toBe('')
  })

  it('diff.external and diff.*.command', async () => {
    repo.git('config', 'diff.external', program)
    repo.git('config', 'diff.x.command', program)
    box.raw(tree.path, '-c', 'diff.external=', 'rm', '-q', '--cached', 'README')
    writeIn(tree.path, '.gitattributes', 'README diff=x\n')
    writeIn(tree.path, 'README', 'changed\n')
    box.raw(tree.path, 'add', '.')
    box.raw(tree.path, 'commit', '-qm', 'x')
    expectPlainGitRunsIt(tree.path, 'diff', 'HEAD~1')
    await expectNothingRan()
  })

  it('diff.*.textconv', async () => {
    repo.git('config', 'diff.x.textconv', program)
    writeIn(tree.path, '.gitattributes', 'README diff=x\n')
    writeIn(tree.path, 'README', 'changed\n')
    box.raw(tree.path, 'add', '.')
    box.raw(tree.path, 'commit', '-qm', 'x')
    expectPlainGitRunsIt(tree.path, 'diff', 'HEAD~1')
    await expectNothingRan()
  })

  it('merge.*.driver, and then the merge conflicts instead of being resolved', async () => {
    markerProgram(program, box.path('ran'), 'exit 0')
    repo.git('config', 'merge.x.driver', program)
    writeIn(tree.path, '.gitattributes', 'README merge=x\n')
    writeIn(tree.path, 'README', 'theirs\n')
    box.raw(tree.path, 'add', '.')
    box.raw(tree.path, 'commit', '-qm', 'x')
    repo.commit('README', 'ours\n')
    repo.write('.git/info/attributes', 'README merge=x\n')
    expectPlainGitRunsIt(repo.path, 'merge-tree', '--write-tree', 'main', 'w')
    await expectNothingRan()
    const tip = repo.sha('w')
    expect(await mergeTrees(git, repo, [{ into: repo.sha('main'), tip }])).toMatchObject([{ clean: false }])
  })

  it('include.path, also of a file that did not exist at first', async () => {
    repo.git('config', 'include.path', box.path('included'))
    git = box.git({ now: () => 0 })
    await readStatus(git, tree)
    writeFileSync(box.path('included'), `[filter "x"]\n\tclean = ${program}\n[core]\n\tfsmonitor = ${program}\n`)
    writeIn(tree.path, '.gitattributes', '* filter=x\n')
    writeIn(tree.path, 'README', 'hellO\n')
    expectPlainGitRunsIt(tree.path, 'status')
    writeIn(tree.path, 'README', 'hellP\n')
    await expectNothingRan()
  })

  it("a worktree's own configuration", async () => {
    repo.git('config', 'extensions.worktreeConfig', 'true')
    box.raw(tree.path, 'config', '--worktree', 'core.fsmonitor', program)
    box.raw(tree.path, 'config', '--worktree', 'filter.x.clean', program)
    writeIn(tree.path, '.gitattributes', '* filter=x\n')
    writeIn(tree.path, 'README', 'hellO\n')
    expectPlainGitRunsIt(tree.path, 'status')
    writeIn(tree.path, 'README', 'hellP\n')
    await expectNothingRan()
  })

  it('submodule.*.update=!command', async () => {
    const library = box.repo('library')
    box.raw(tree.path, 'submodule', '--quiet', 'add', library.path, 'lib')
    box.raw(tree.path, 'commit', '-qm', 'lib')
    repo.git('config', 'submodule.lib.update', `!${program}`)
    repo.git('config', 'submodule.lib.active', 'true')
    library.commit('x', 'y')
    box.raw(join(tree.path, 'lib'), 'pull', '-q')
    expectPlainGitRunsIt(tree.path, 'submodule', 'update')
    const at = repo.sha('w')
    const branch = { create: toBranchName('with-submodule') }
    const fresh = await addWithFiles({ path: box.path('fresh'), branch, at, lockReason: 'r' })
    await initSubmodules(git, fresh)
    expect(existsSync(join(fresh.path, 'lib', 'README'))).toBe(true)
    expect(ran()).toBe(false)
  })
})

describe('a fetch runs nothing of the repository and goes where the user said', () => {
  const refspecs = ['+refs/heads/*:refs/remotes/origin/*']
  let upstream: TestRepo
  beforeEach(() => {
    upstream = box.repo('upstream')
    repo.git('remote', 'add', 'origin', upstream.path)
  })
  const fetched = () => fetchRemote(git, repo, { remote: 'origin', refspecs })
  const tracked = (): string => repo.git('rev-parse', 'refs/remotes/origin/main')

  it('core.sshCommand and ssh.variant', async () => {
    markerProgram(program, box.path('ran'), 'exit 1')
    const own = markerProgram(box.path('ssh'), box.path('own-ran'), 'exit 1')
    repo.git('remote', 'set-url', 'origin', 'ssh://git@127.0.0.1:1/x')
    repo.git('config', 'core.sshCommand', program)
    expectPlainGitRunsIt(repo.path, 'fetch')
    box.raw(box.root, 'config', '--global', 'core.sshCommand', own)
    expect(await fetched()).toMatchObject({ outcome: 'unreachable' })
    expect(ran()).toBe(false)
    expect(existsSync(box.path('own-ran'))).toBe(true)
  })

  it('core.askPass', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"' }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    markerProgram(program, box.path('ran'), 'echo x')
    repo.git('remote', 'set-url', 'origin', `http://127.0.0.1:${port}/x`)
    repo.git('config', 'core.askPass', program)
    // Not synchronous like the others: the server is in this process.
    const env = { ...box.env, GIT_TERMINAL_PROMPT: '0' }
    await promisify(execFile)('git', ['fetch'], { cwd: repo.path, env, timeout: 30_000 }).catch(() => undefined)
    expect(ran()).toBe(true)
    forget()
    await fetched()
    expect(ran()).toBe(false)
    await new Promise((resolve) => server.close(resolve))
  })

  it('remote.*.uploadpack and uploadpack.packObjectsHook', async () => {
    markerProgram(program, box.path('ran'), 'exec git-upload-pack "$@"')
    repo.git('config', 'remote.origin.uploadpack', program)
    upstream.git('config', 'uploadpack.packObjectsHook', program)
    expectPlainGitRunsIt(repo.path, 'fetch')
    expect(await fetched()).toMatchObject({ outcome: 'fetched' })
    expect(ran()).toBe(false)
  })

  it('remote.*.vcs and ext:: transports', async () => {
    markerProgram(program, box.path('ran'), 'exit 1')
    repo.git('config', 'protocol.ext.allow', 'always')
    repo.git('remote', 'set-url', 'origin', `ext::${program}`)
    expectPlainGitRunsIt(repo.path, 'fetch')
    expect(await fetched()).toMatchObject({ outcome: 'unreachable' })
    expect(ran()).toBe(false)
  })

  it('core.gitProxy', async () => {
    markerProgram(program, box.path('ran'), 'exit 1')
    repo.git('remote', 'set-url', 'origin', 'git://127.0.0.1:1/x')
    repo.git('config', 'core.gitProxy', program)
    expectPlainGitRunsIt(repo.path, 'fetch')
    expect(await fetched()).toMatchObject({ outcome: 'unreachable' })
    expect(ran()).toBe(false)
  })

  it('core.alternateRefsCommand', async () => {
    repo.git('config', 'core.alternateRefsCommand', program)
    const lender = box.repo('lender')
    writeIn(repo.commonDir, 'objects/info/alternates', `${lender.commonDir}/objects\n`)
    upstream.commit('x', 'y')
    expectPlainGitRunsIt(repo.path, 'fetch')
    upstream.commit('x', 'z')
    expect(await fetched()).toMatchObject({ outcome: 'fetched' })
    expect(ran()).toBe(false)
  })

  it.each([
    ['the whole URL', (url: string) => url],
    ['an empty prefix', () => ''],
    ['everything that starts like our names', () => 'coppice-'],
  ])('url.*.insteadOf for %s', async (_what, prefix) => {
    const evil = box.repo('evil-repo')
    evil.commit('evil', 'x')
    // An alias that swallows the rest of the name it stands for.
    const base = `${evil.path}/.git/../../evil-repo`
    execFileSync('git', ['config', '--add', `url.${base}.insteadOf`, prefix(upstream.path)], {
      cwd: repo.path,
      env: box.env,
    })
    plainly(repo.path, 'fetch', '-q', 'origin', ...refspecs)
    const believed = existsSync(join(repo.commonDir, 'refs/remotes/origin/main')) ? tracked() : undefined
    // Plain git believes the first; the other two only matter to names such as ours.
    expect(believed === evil.sha()).toBe(prefix(upstream.path) === upstream.path)
    expect(await fetched()).toMatchObject({ outcome: 'fetched' })
    expect(tracked()).toBe(upstream.sha())
  })

  it('a promisor remote, which git would ask for missing objects by itself', async () => {
    markerProgram(program, box.path('ran'), 'exit 1')
    repo.git('config', 'remote.evil.url', upstream.path)
    repo.git('config', 'remote.evil.promisor', 'true')
    repo.git('config', 'remote.evil.uploadpack', program)
    repo.git('config', 'extensions.partialClone', 'evil')
    repo.git('config', 'core.repositoryFormatVersion', '1')
    const nowhere = '1'.repeat(40)
    expectPlainGitRunsIt(repo.path, 'cat-file', '-t', nowhere)
    expect(await resolveCommit(git, repo, nowhere)).toBeUndefined()
    await expectNothingRan()
  })
})

describe('what the repository claims is not believed', () => {
  it('a rewritten .git file', async () => {
    const other = box.repo('other')
    other.git('config', 'core.fsmonitor', program)
    writeFileSync(join(tree.path, '.git'), `gitdir: ${other.commonDir}\n`)
    expectPlainGitRunsIt(tree.path, 'status')
    expect(await readStatus(git, tree)).toMatchObject({ branch: 'w', headSha: repo.sha('w') })
    await expectNothingRan()
  })

  it('refs/replace', async () => {
    const real = repo.sha()
    const other = repo.commit('x', 'y')
    repo.git('replace', real, other)
    expect(repo.git('rev-parse', `${real}^{tree}`)).toBe(repo.git('rev-parse', `${other}^{tree}`))
    const trees = await treesOf(git, repo, [real, other])
    expect(trees.get(real)).not.toBe(trees.get(other))
  })

  it('core.excludesFile that hides untracked files; a name in info/exclude is still told as ignored', async () => {
    writeFileSync(box.path('hide'), 'work\n')
    repo.git('config', 'core.excludesFile', box.path('hide'))
    writeIn(tree.path, 'work', 'precious')
    expect(box.raw(tree.path, 'status', '--porcelain')).toBe('')
    expect((await readStatus(git, tree)).untracked).toEqual([expect.objectContaining({ path: 'work' })])
    writeIn(repo.commonDir, 'info/exclude', 'work\n')
    expect((await readStatus(git, tree)).ignored).toEqual([expect.objectContaining({ path: 'work' })])
  })

  it('core.worktree', async () => {
    writeIn(box.path('elsewhere'), 'x', '')
    repo.git('config', 'core.worktree', box.path('elsewhere'))
    const main: Tree = { commonDir: repo.commonDir, gitDir: repo.commonDir, path: repo.path }
    expect(await readStatus(git, main)).toMatchObject({ changed: [], untracked: [] })
  })
})

describe("what the user's own configuration says is honoured", () => {
  it('a global filter still works, also where the repository names another', async () => {
    const own = markerProgram(box.path('own'), box.path('own-ran'), 'tr a-z A-Z')
    box.raw(box.root, 'config', '--global', 'filter.up.smudge', own)
    repo.git('config', 'filter.up.smudge', program)
    writeIn(tree.path, '.gitattributes', 'README filter=up\n')
    box.raw(tree.path, 'add', '.')
    box.raw(tree.path, 'commit', '-qm', 'x')
    const branch = { create: toBranchName('up') }
    const made = await addWithFiles({ path: box.path('up'), branch, at: repo.sha('w'), lockReason: 'r' })
    expect(execFileSync('cat', [join(made.path, 'README')], { encoding: 'utf8' })).toBe('HELLO\n')
    expect(ran()).toBe(false)
  })

  it('a global excludesFile still ignores', async () => {
    writeFileSync(box.path('ignore'), '*.swp\n')
    box.raw(box.root, 'config', '--global', 'core.excludesFile', box.path('ignore'))
    writeIn(tree.path, '.x.swp', '')
    expect(await readStatus(git, tree)).toMatchObject({ untracked: [], ignored: [{ path: '.x.swp' }] })
  })

  it('the ignore file in its usual place still ignores', async () => {
    writeIn(box.home, '.config/git/ignore', '*.swp\n')
    writeIn(tree.path, '.x.swp', '')
    expect(await readStatus(git, tree)).toMatchObject({ untracked: [], ignored: [{ path: '.x.swp' }] })
  })
})

describe('options and files named in the configuration are not used', () => {
  it.each([
    ['branch.main.mergeOptions', '--squash', ''],
    ['checkout.workers', '100000', '1'],
    ['core.filesRefLockTimeout', '-1', '100'],
    ['core.packedRefsTimeout', '-1', '1000'],
    ['lfs.customtransfer.x.path', '/evil', ''],
    ['lfs.standalonetransferagent', 'x', ''],
    ['lfs.extension.x.smudge', '/evil', ''],
  ])('%s', async (key, value, ours) => {
    const ask = async (): Promise<string> =>
      (await git.run({ operation: 'config', at: repo, args: ['config', '--get', key] })).stdout.trim()
    repo.git('config', key, value)
    expect(await ask()).toBe(ours)
    // What the user says holds.
    box.raw(box.root, 'config', '--global', key, '7')
    expect(await ask()).toBe('7')
  })

  it('waiting for ever for a lock that somebody left', async () => {
    repo.git('config', 'core.filesRefLockTimeout', '-1')
    repo.git('config', 'core.packedRefsTimeout', '-1')
    const to = repo.sha('main')
    writeIn(repo.commonDir, 'refs/heads/made.lock', '')
    const create = updateRefs(git, repo, [{ create: 'refs/heads/made', to }], { reason: 'test' })
    await expect(create).rejects.toMatchObject({ code: 'busy' })
    writeIn(repo.commonDir, 'packed-refs.lock', '')
    const remove = updateRefs(git, repo, [{ delete: 'refs/heads/w', from: to }], { reason: 'test' })
    await expect(remove).rejects.toMatchObject({ code: 'busy' })
  })
})
