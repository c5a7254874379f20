import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openLauncher } from '../../test/helpers/launcher.ts'
import { markerProgram, makeSandbox, type Sandbox } from '../../test/helpers/repo.ts'
import { identityWord, type ProcessIdentity } from '../domain/process-identity.ts'
import { gitStarterVariable } from '../process/git-processes.ts'
import { liveness, selfIdentity } from '../process/identity.ts'
import { parentOf } from '../process/identity-linux.ts'
import type { Launched, Launcher } from '../process/launcher/launcher.ts'
import { processTable } from '../process/table.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())

/** With one that is ready, or without. */
const starters = {
  'started by ourselves': () => Promise.resolve(undefined),
  'started by the launcher': openLauncher,
}

describe.each(Object.entries(starters))('exit codes, %s', (_how, open) => {
  let launcher: Launcher | undefined
  beforeEach(async () => {
    launcher = await open()
  })

  it('answers with a declared exit code and refuses an undeclared one', async () => {
    const repo = box.repo()
    const git = box.git({ launcher })
    const request = { operation: 'rev-parse', at: repo, args: ['rev-parse', '--verify', '--quiet', 'nothing'] }
    expect((await git.run({ ...request, ok: [0, 1] })).exitCode).toBe(1)
    await expect(git.run(request)).rejects.toMatchObject({ code: 'git-failed' })
  })

  it("names the operation and git's own reason, without the credentials of a URL", async () => {
    const repo = box.repo()
    const args = ['ls-remote', '--', 'https://ada:hunter2hunter2@127.0.0.1:1/x.git']
    const failed = box.git({ launcher }).run({ operation: 'ls-remote', at: repo, args })
    await expect(failed).rejects.toThrow(/^git ls-remote failed: unable to access/)
    await expect(failed).rejects.not.toThrow(/hunter2/)
  })

  it('says that the disk is full when git says so', async () => {
    const repo = box.repo()
    const program = markerProgram(
      box.path('git'),
      box.path('ran'),
      'echo "fatal: write error: No space left on device" >&2; exit 128',
    )
    const git = box.git({ launcher, program })
    await expect(git.run({ operation: 'gc', at: repo, args: ['gc'] })).rejects.toMatchObject({ code: 'disk-full' })
  })

  it('hears a git that talks without end at its beginning and at its end', async () => {
    const talk = `case "$*" in *config*) exit 0 ;; esac; echo 'fatal: first' >&2; yes '-eyJ-eyJ-eyJ' | head -c 3000000 >&2; echo >&2; echo 'error: last' >&2; exit 1`
    const git = box.git({ launcher, program: markerProgram(box.path('talking'), box.path('talked'), talk) })
    const { stderr } = await git.run({ operation: 'x', at: box.repo(), args: ['x'], ok: [1] })
    expect(stderr.length).toBeLessThan(70_000)
    expect([stderr.split('\n').at(0), stderr.trimEnd().split('\n').at(-1)]).toEqual(['fatal: first', 'error: last'])
  })

  it('says that git is not there', async () => {
    const repo = box.repo()
    const git = box.git({ launcher, program: '/nowhere/git' })
    await expect(git.run({ operation: 'x', at: repo, args: [] })).rejects.toMatchObject({ code: 'git-unavailable' })
  })

  it('does not call git missing when it is the worktree that is gone', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'w')
    rmSync(tree.path, { recursive: true })
    const status = box.git({ launcher }).run({ operation: 'status', at: tree, args: ['status'] })
    await expect(status).rejects.toMatchObject({ code: 'not-found' })
  })
})

/** The command lines of our gits and of their children. */
const startedByUs = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const mark = `${gitStarterVariable}=${identityWord(selfIdentity())}\0`
        const isOurs = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark)
        return isOurs ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8')] : []
      } catch {
        return []
      }
    })

describe('ending a git that runs', () => {
  const hanging = (trap = ''): string =>
    markerProgram(
      box.path('slow'),
      box.path('ran'),
      `case "$1" in config) exit 0 ;; esac\n${trap}\nsleep 600 & echo $! > '${box.path('grandchild')}'\necho ready; wait; wait`,
    )

  it('kills the whole group after the time-out and only then answers', async () => {
    const repo = box.repo()
    const git = box.git({ program: hanging(`trap '' TERM`) })
    let identity: ProcessIdentity | undefined
    const run = git.run({
      operation: 'fetch',
      at: repo,
      args: ['fetch'],
      timeoutMs: 2_000,
      onSpawn: (child) => {
        identity = child
      },
    })
    await expect(run).rejects.toMatchObject({ code: 'timeout' })
    expect(identity && liveness(identity)).toBe('dead')
    expect(existsSync(box.path('grandchild'))).toBe(true)
    const members = (await processTable()).filter((row) => row.processGroup === identity?.pid && !row.zombie)
    expect(members).toEqual([])
  })

  it.each([
    ['after the time-out', 'timeout'],
    ['when it is cancelled while it starts', 'cancelled'],
    ['when it is cancelled while it runs', 'cancelled'],
  ])('that the launcher has started is killed with its group: %s', async (when, code) => {
    const repo = box.repo()
    const launcher = await openLauncher()
    const controller = new AbortController()
    const launched: Launched[] = []
    const git = box.git({
      program: hanging(),
      launcher: {
        ...launcher,
        launch: (what) => {
          const one = launcher.launch(what)
          launched.push(...(one === undefined ? [] : [one]))
          if (when.endsWith('starts')) controller.abort()
          return one
        },
      },
    })
    const timeoutMs = code === 'timeout' ? 1_000 : 60_000
    const run = git.run({
      operation: 'status',
      at: repo,
      args: ['status'],
      signal: controller.signal,
      timeoutMs,
    })
    run.catch(() => undefined)
    if (when.endsWith('runs')) {
      await vi.waitUntil(() => existsSync(box.path('grandchild')))
      controller.abort()
    }
    await expect(run).rejects.toMatchObject({ code })
    const identities = await Promise.all(launched.map(({ started }) => started))
    expect(identities.map((one) => one !== 'lost' && liveness(one))).toEqual(['dead'])
    expect(git.running.size).toBe(0)
    expect(startedByUs()).toEqual([])
  })

  it('asks again if the launcher dies, since it only reads; what had been started is dead', async () => {
    const repo = box.repo()
    const [asked, first] = [box.path('asked'), box.path('first')]
    const script = `case "$1" in config) exit 0 ;; esac\n[ -e '${asked}' ] && { echo answer; exit; }\n: > '${asked}'; echo $$ > '${first}'; exec sleep 600`
    const git = box.git({
      program: markerProgram(box.path('slow'), box.path('ran'), script),
      launcher: await openLauncher(),
    })
    const run = git.run({ operation: 'status', at: repo, args: ['status'] })
    const pid = await vi.waitFor(() => {
      const [, text] = /^(\d+)\n/.exec(readFileSync(first, 'utf8')) ?? []
      if (text === undefined) throw new Error('not started')
      return Number(text)
    })
    process.kill(parentOf(pid) ?? 0, 'SIGKILL')
    expect((await run).stdout).toBe('answer\n')
    expect(startedByUs()).toEqual([])
  })

  it('leads a process group of its own, so that Ctrl-C reaches us alone', async () => {
    const repo = box.repo()
    const git = box.git({ program: hanging() })
    const controller = new AbortController()
    let group: number | undefined
    let pid: number | undefined
    const run = git.run({
      operation: 'fetch',
      at: repo,
      args: ['fetch'],
      signal: controller.signal,
      onSpawn: (child) => {
        pid = child.pid
      },
      onStdout: async () => {
        group = (await processTable()).find((row) => row.identity.pid === pid)?.processGroup
        controller.abort()
      },
    })
    await expect(run).rejects.toMatchObject({ code: 'cancelled' })
    expect(group).toBe(pid)
  })

  it.each([
    ['gets SIGTERM first', false],
    ['gets no SIGTERM if it must be killed at once', true],
  ])('is cancelled by its signal: %s', async (_how, killAtOnce) => {
    const repo = box.repo()
    const git = box.git({ program: hanging(`trap ": > '${box.path('asked')}'" TERM`) })
    const controller = new AbortController()
    const onStdout = (): void => controller.abort()
    const { signal } = controller
    const run = git.run({ operation: 'fetch', at: repo, args: ['fetch'], signal, onStdout, killAtOnce })
    await expect(run).rejects.toMatchObject({ code: 'cancelled' })
    expect(existsSync(box.path('asked'))).toBe(!killAtOnce)
  })

  it('does not start at all under a signal that has fired', async () => {
    const repo = box.repo()
    const git = box.git()
    await git.config(repo)
    const before = git.spawned()
    const run = git.run({ operation: 'x', at: repo, args: ['status'], signal: AbortSignal.abort() })
    await expect(run).rejects.toMatchObject({ code: 'cancelled' })
    expect(git.spawned()).toBe(before)
  })
})

describe('the environment of git', () => {
  it('is built: no variable of ours is inherited, above all no GIT_*', async () => {
    const repo = box.repo()
    const seen = box.path('seen')
    const program = markerProgram(
      box.path('spy'),
      box.path('ran'),
      `case "$1" in config) ;; *) env > '${seen}' ;; esac`,
    )
    const env = { ...box.env, GIT_DIR: '/evil', GIT_EXTERNAL_DIFF: 'evil', SLACK_BOT_TOKEN: 'x', EDITOR: 'vi' }
    await box.git({ program, env }).run({ operation: 'x', at: repo, args: ['x'] })
    const text = readFileSync(seen, 'utf8')
    expect(text).not.toMatch(/evil|SLACK|EDITOR=vi/)
    expect(text).toMatch(/^GIT_TERMINAL_PROMPT=0$/m)
    expect(text).toMatch(/^GIT_OPTIONAL_LOCKS=0$/m)
    expect(text).toMatch(/^LC_ALL=C$/m)
    expect(text).not.toMatch(/COPPICE_ASKPASS/)
  })

  it('is told where the repository is, whatever the .git file of a worktree says', async () => {
    const repo = box.repo()
    const other = box.repo('other')
    const tree = repo.worktree('w', '-b', 'w')
    writeFileSync(join(tree.path, '.git'), `gitdir: ${other.commonDir}\n`)
    const head = await box.git().run({ operation: 'head', at: tree, args: ['symbolic-ref', 'HEAD'] })
    expect(head.stdout.trim()).toBe('refs/heads/w')
  })

  it('is told the common directory, whatever the record of a worktree says', async () => {
    const repo = box.repo()
    const other = box.repo('other')
    const tree = repo.worktree('w', '-b', 'w')
    writeFileSync(join(tree.gitDir, 'commondir'), `${other.commonDir}\n`)
    const found = await box.git().run({ operation: 'x', at: tree, args: ['rev-parse', '--git-common-dir'] })
    expect(found.stdout.trim()).toBe(repo.commonDir)
  })

  it('refuses a repository whose common directory points to another one', async () => {
    const repo = box.repo()
    writeFileSync(join(repo.commonDir, 'commondir'), `${box.repo('other').commonDir}\n`)
    const run = box.git().run({ operation: 'x', at: repo, args: ['rev-parse', 'HEAD'] })
    await expect(run).rejects.toMatchObject({ code: 'not-a-repository' })
  })
})

describe('the configuration', () => {
  it('is read once for a repository and all its worktrees while nothing changes', async () => {
    const repo = box.repo()
    const trees = [repo.worktree('a', '-b', 'a'), repo.worktree('b', '-b', 'b')]
    // A clock that is far from the files' times: none of them was written just now.
    const git = box.git({ now: () => 0 })
    await git.config(repo)
    for (const tree of trees) await git.config(tree)
    await git.config(repo)
    expect(git.spawned()).toBe(1)
  })

  it('is read again after a change, also by whoever asks at the same moment', async () => {
    const repo = box.repo()
    const git = box.git({ now: () => 0 })
    await git.config(repo)
    repo.git('config', 'filter.x.clean', 'evil')
    const entries = await git.config(repo)
    expect(entries).toContainEqual(expect.objectContaining({ scope: 'local', key: 'filter.x.clean', value: 'evil' }))
  })

  it('is read again when a worktree gets one of its own', async () => {
    const repo = box.repo()
    const tree = repo.worktree('a', '-b', 'a')
    const git = box.git({ now: () => 0 })
    await git.config(tree)
    repo.git('config', 'extensions.worktreeConfig', 'true')
    box.raw(tree.path, 'config', '--worktree', 'core.sshCommand', 'evil')
    const entries = await git.config(tree)
    expect(entries).toContainEqual(expect.objectContaining({ scope: 'worktree', key: 'core.sshcommand' }))
  })

  it('is never remembered when it includes a file that may appear at any time', async () => {
    const repo = box.repo()
    const later = box.path('later')
    repo.git('config', 'include.path', later)
    const git = box.git({ now: () => 0 })
    await git.config(repo)
    writeFileSync(later, '[filter "x"]\n\tclean = evil\n')
    expect(await git.config(repo)).toContainEqual(expect.objectContaining({ key: 'filter.x.clean', scope: 'local' }))
  })

  it('is not remembered when a file was written within the same tick of the kernel', async () => {
    const repo = box.repo()
    const git = box.git({ now: () => statSync(join(repo.commonDir, 'config')).ctimeMs + 10 })
    await git.config(repo)
    await git.config(repo)
    expect(git.spawned()).toBe(2)
  })
})
