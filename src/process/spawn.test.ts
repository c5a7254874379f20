import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { argumentsOf } from './arguments.ts'
import { describeGitProcesses, gitProcessesUsing } from './git-processes.ts'
import { identifySync, liveness } from './identity.ts'
import { killTree } from './kill.ts'
import { runProgram, spawnDetached } from './spawn.ts'

const clock = () => performance.now()
const env = { PATH: process.env['PATH'] }
const base = { env, clock, cwd: '/', outputLimitBytes: 10_000, graceMs: 1_000 }

let dir = ''
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'coppice-spawn-')))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

test('a program gets its arguments, directory, input and environment, and nothing of ours', async () => {
  const code = `process.stdin.pipe(process.stdout); process.stderr.write(process.cwd() + process.argv[1] + Object.keys(process.env))`
  const result = await runProgram({
    ...base,
    command: process.execPath,
    args: ['-e', code, 'a b;$(c)'],
    cwd: dir,
    env: { ONLY: 'this' },
    stdin: 'grüße',
  })
  expect(result).toMatchObject({ exitCode: 0, signal: null, stdout: 'grüße', timedOut: false, truncated: false })
  expect(result.stderr).toBe(`${dir}a b;$(c)ONLY`)
})

test('exit code and signal are told apart, and the two streams are also kept in their order', async () => {
  const seen = join(dir, 'seen')
  const until = (text: string): string => `until grep -q ${text} '${seen}' 2>/dev/null; do sleep 0.01; done`
  const failed = await runProgram({
    ...base,
    shell: `echo one; ${until('one')}; echo two >&2; ${until('two')}; echo three; exit 3`,
    onOutput: (text) => appendFileSync(seen, text),
  })
  expect(failed).toMatchObject({ exitCode: 3, output: 'one\ntwo\nthree\n', stdout: 'one\nthree\n', stderr: 'two\n' })
  expect(await runProgram({ ...base, shell: 'kill -9 $$' })).toMatchObject({ exitCode: null, signal: 'SIGKILL' })
})

test('of long output the end is kept and the cut is told', async () => {
  const result = await runProgram({ ...base, outputLimitBytes: 100, shell: 'seq 1 100000; echo the reason' })
  expect(result.truncated).toBe(true)
  expect(result.stdout).toHaveLength(100)
  expect(result.stdout.endsWith('100000\nthe reason\n')).toBe(true)
  const exact = await runProgram({ ...base, outputLimitBytes: 4, shell: 'printf 1234' })
  expect(exact).toMatchObject({ stdout: '1234', truncated: false })
})

test('a time-out ends the whole tree, what it put in the background included', async () => {
  const family: ProcessIdentity[] = []
  // On a busy machine the shell may need longer to start both.
  for (let timeoutMs = 500; family.length < 3; timeoutMs *= 4) {
    family.length = 0
    const result = await runProgram({
      ...base,
      shell: `trap '' TERM; sleep 60 & echo $!; (trap '' TERM; sleep 60) & echo $!; wait; sleep 60`,
      timeoutMs,
      graceMs: 200,
      onStart: (identity) => family.push(identity),
      onOutput: (text) =>
        family.push(
          ...text
            .trim()
            .split('\n')
            .flatMap((pid) => identifySync(Number(pid)) ?? []),
        ),
    })
    expect(result.timedOut).toBe(true)
  }
  expect(family.map(liveness)).toEqual(['dead', 'dead', 'dead'])
})

test('an abort ends the tree and is an error of its own', async () => {
  const abort = new AbortController()
  let root: ProcessIdentity | undefined
  const run = runProgram({
    ...base,
    shell: 'echo up; sleep 60',
    signal: abort.signal,
    onStart: (identity) => (root = identity),
    onOutput: () => abort.abort(),
  })
  await expect(run).rejects.toMatchObject({ code: 'cancelled' })
  expect(root === undefined ? 'unknown' : liveness(root)).toBe('dead')
  await expect(runProgram({ ...base, shell: 'true', signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'cancelled',
  })
})

test('a server left in the background does not keep us waiting, and lives on', async () => {
  // Far longer than this test may take.
  const { stdout } = await runProgram({ ...base, shell: 'sleep 600 & echo $!' })
  const server = identifySync(Number(stdout))
  if (server === undefined) throw new Error('it did not live on')
  await killTree(server, { graceMs: 1_000, clock })
})

test('a program that does not read its input is no fault', async () => {
  const result = await runProgram({ ...base, shell: 'exit 0', stdin: 'x'.repeat(1_000_000) })
  expect(result.exitCode).toBe(0)
})

test('what cannot be started says which of the two is missing, without its arguments', async () => {
  const missing = runProgram({ ...base, command: 'no-such-program', args: ['--token=hunter2'] })
  await expect(missing).rejects.toMatchObject({ code: 'program-failed', message: /no-such-program could not.*ENOENT/ })
  await expect(missing).rejects.not.toThrow(/hunter2/)
  const nowhere = runProgram({ ...base, command: 'true', args: [], cwd: join(dir, 'gone') })
  await expect(nowhere).rejects.toThrow(/the directory .*gone doesn.t exist/)
})

test('background work writes to its log and has no tie to us', async () => {
  const logFile = join(dir, 'log')
  const identity = await spawnDetached({
    command: '/bin/sh',
    args: ['-c', 'echo out; echo err >&2; exec sleep 60'],
    cwd: dir,
    env,
    logFile,
  })
  while (!readFileSync(logFile, 'utf8').includes('err')) await new Promise(setImmediate)
  expect(readFileSync(logFile, 'utf8')).toBe('out\nerr\n')
  expect(liveness(identity)).toBe('alive')
  await killTree(identity, { graceMs: 1_000, clock })
  await expect(spawnDetached({ command: 'no-such-program', args: [], cwd: dir, env })).rejects.toMatchObject({
    code: 'program-failed',
  })
})

test('a git at work is found by its directory, its --git-dir and its GIT_DIR, also in a linked worktree', async () => {
  const gitEnv = { ...env, HOME: dir, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: dir, env: gitEnv, stdio: 'pipe' })
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.org']
  for (const name of ['one', 'two']) {
    git('init', '-q', name)
    git('-C', name, ...who, 'commit', '-q', '--allow-empty', '-m', 'start')
  }
  git('-C', 'one', 'worktree', 'add', '-q', '-b', 'x', join(dir, 'linked'))
  mkdirSync(join(dir, 'one', 'deep'))
  const oneGit = join(dir, 'one', '.git')
  // `cat-file --batch` waits for its input, so it stays for as long as we like
  const waiting = (args: string[], cwd: string, extra: Record<string, string> = {}) =>
    spawnDetached({
      command: '/bin/sh',
      args: ['-c', 'tail -f /dev/null | git "$@" cat-file --batch', 'sh', ...args],
      cwd,
      env: { ...gitEnv, ...extra },
    })
  const places: [string[], string, Record<string, string>?][] = [
    [[], join(dir, 'one', 'deep')],
    [[], join(dir, 'linked')],
    [['-C', join(dir, 'one')], '/'],
    [[`--git-dir=${oneGit}`], '/'],
    [[], '/', { GIT_DIR: oneGit }],
  ]
  // As our own git calls without a repository have it.
  const nowhere = spawn('git', ['hash-object', '--stdin'], {
    cwd: '/',
    env: { ...gitEnv, GIT_DIR: '/dev/null/none' },
    stdio: 'pipe',
  })
  try {
    await expect.poll(async () => await argumentsOf(nowhere.pid ?? 0)).toEqual(['git', 'hash-object', '--stdin'])
    expect(await gitProcessesUsing(oneGit)).toEqual([])
  } finally {
    nowhere.kill('SIGKILL')
  }
  for (const [args, cwd, extra] of places) {
    const identity = await waiting(args, cwd, extra)
    let found = await gitProcessesUsing(oneGit)
    while (found.length === 0 && liveness(identity) === 'alive') found = await gitProcessesUsing(oneGit)
    expect(found.map(({ commandLine }) => commandLine)).toEqual([expect.stringContaining('cat-file --batch')])
    expect(await gitProcessesUsing(join(dir, 'two', '.git'))).toEqual([])
    await killTree(identity, { graceMs: 1_000, clock })
  }
  expect(await gitProcessesUsing(oneGit)).toEqual([])
})

test('a daemon that writes neither refs nor the index is not at work, whoever handed it GIT_DIR', async () => {
  const gitDir = join(dir, 'one', '.git')
  const gitEnv = { ...env, HOME: dir, GIT_CONFIG_NOSYSTEM: '1', GIT_DIR: gitDir }
  const git = (args: string[], input = '') => execFileSync('git', args, { cwd: dir, env: gitEnv, input })
  execFileSync('git', ['init', '-q', 'one'], { cwd: dir, env: { ...gitEnv, GIT_DIR: undefined } })
  // Under the name of git, any arguments are fine for a program that waits for these files to appear.
  symlinkSync('/usr/bin/tail', join(dir, 'git'))
  symlinkSync('/usr/bin/tail', join(dir, 'git-daemon'))
  const started: ProcessIdentity[] = []
  const start = async (program: string, ...args: string[]): Promise<string> => {
    const command = join(dir, program)
    started.push(await spawnDetached({ command, args: [...args, '-qF'], cwd: '/', env: gitEnv }))
    return [command, ...args, '-qF'].join(' ')
  }
  try {
    git(['credential-cache', 'store'], 'protocol=https\nhost=x\nusername=u\npassword=p\n')
    await start('git', 'credential-cache--daemon', join(dir, 'socket'))
    await start('git', 'fsmonitor--daemon', 'run')
    await start('git', 'daemon', gitDir)
    await start('git-daemon', gitDir)
    const atWork = [
      await start('git', 'fsmonitor--daemon', 'start'),
      await start('git', 'maintenance', 'run'),
      await start('git', 'gc'),
      await start('git', 'fetch', 'credential-cache--daemon'),
    ]
    const found = await gitProcessesUsing(gitDir)
    expect(found.map(({ commandLine }) => commandLine).sort()).toEqual(atWork.sort())
    const ours = await gitProcessesUsing(gitDir, { ofOthers: false })
    expect(ours).toEqual(found)
    // Only root can start a program as somebody else; anybody else starts one more of their own.
    const isRoot = process.getuid?.() === 0
    chmodSync(dir, 0o711)
    const other = spawn(join(dir, 'git'), ['gc', '-qF', '/dev/null'], {
      cwd: '/',
      env: gitEnv,
      stdio: 'ignore',
      ...(isRoot && { uid: 65_534, gid: 65_534 }),
    })
    try {
      await once(other, 'spawn')
      expect(await gitProcessesUsing(gitDir)).toHaveLength(found.length + 1)
      expect(await gitProcessesUsing(gitDir, { ofOthers: false })).toHaveLength(found.length + (isRoot ? 0 : 1))
    } finally {
      other.kill('SIGKILL')
    }
    const last = found.slice(-1)
    expect(describeGitProcesses(last)).toBe(
      `git process ${last[0]?.identity.pid} (${last[0]?.commandLine}) is still running`,
    )
    expect(describeGitProcesses(found)).toMatch(
      /^git processes \d+ \(.+\), \d+ \(.+\), \d+ \(.+\) and 1 more are still running$/,
    )
  } finally {
    for (const identity of started) await killTree(identity, { graceMs: 1_000, clock })
    git(['credential-cache', 'exit'])
  }
})

test('a program that must be written down first has done nothing until that is done', async () => {
  const marker = join(dir, 'began')
  const steps: string[] = []
  const result = await runProgram({
    ...base,
    shell: `echo began > '${marker}'; cat; echo $$ >&2`,
    stdin: 'input',
    beforeWork: async (identity) => {
      // as long as a shell takes that does the same
      await runProgram({ ...base, shell: `echo began > '${marker}.other'; echo x` })
      steps.push(existsSync(marker) ? 'too early' : 'held', liveness(identity), String(identity.pid))
    },
  })
  expect(result).toMatchObject({ exitCode: 0, stdout: 'input' })
  // the same process from beginning to end, so that what was written down names it
  expect(steps).toEqual(['held', 'alive', result.stderr.trim()])
  expect(existsSync(marker)).toBe(true)
  const direct = await runProgram({ ...base, command: 'printf', args: ['%s', 'a b'], beforeWork: async () => {} })
  expect(direct.stdout).toBe('a b')
})

test('what cannot be written down does not begin', async () => {
  const marker = join(dir, 'began')
  let root: ProcessIdentity | undefined
  const run = runProgram({
    ...base,
    shell: `echo began > '${marker}'`,
    beforeWork: async (identity) => {
      root = identity
      throw new Error('the disk is full')
    },
  })
  await expect(run).rejects.toThrow('the disk is full')
  expect(root === undefined ? 'unknown' : liveness(root)).toBe('dead')
  expect(existsSync(marker)).toBe(false)
})

test('an abort while it is being written down ends it, and is settled after the writing', async () => {
  const abort = new AbortController()
  const steps: string[] = []
  const run = runProgram({
    ...base,
    shell: 'echo began',
    signal: abort.signal,
    beforeWork: async (identity) => {
      abort.abort()
      while (liveness(identity) !== 'dead') await new Promise(setImmediate)
      // longer than it takes to notice the end of the process
      await runProgram({ ...base, shell: 'true' })
      steps.push('written')
    },
    onOutput: (text) => steps.push(text),
  })
  await expect(run).rejects.toMatchObject({ code: 'cancelled' })
  expect(steps).toEqual(['written'])
})

test('when we die before it is written down, the program ends without having begun', async () => {
  const marker = join(dir, 'began')
  const pidFile = join(dir, 'pid')
  const spawnModule = new URL('spawn.ts', import.meta.url).href
  const code = `
    const { runProgram } = await import(${JSON.stringify(spawnModule)})
    const { writeFileSync } = await import('node:fs')
    setInterval(() => {}, 1000)
    await runProgram({
      shell: "echo began > '${marker}'", cwd: '/', env: {}, clock: Date.now, outputLimitBytes: 100, stdin: 'x',
      beforeWork: (identity) => new Promise(() => writeFileSync('${pidFile}', JSON.stringify(identity))),
    })`
  const ours = await spawnDetached({
    command: process.execPath,
    args: ['--input-type=module', '-e', code],
    cwd: '/',
    env,
  })
  const written = () => (existsSync(pidFile) ? readFileSync(pidFile, 'utf8') : '')
  while (!written().endsWith('}')) await new Promise(setImmediate)
  const program = JSON.parse(written()) as ProcessIdentity
  expect(liveness(program)).toBe('alive')
  process.kill(ours.pid, 'SIGKILL')
  while (liveness(program) === 'alive') await new Promise(setImmediate)
  expect(existsSync(marker)).toBe(false)
})
