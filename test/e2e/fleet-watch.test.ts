import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { type CliWorld, main, makeCliWorld } from '../helpers/cli.ts'
import { testInTmux } from '../helpers/tmux.ts'

/*
 * `coppice fleet watch` as a person sees it: the real program in a real terminal (of a tmux server of the test's own),
 * with real agents in Coppice's tmux sessions.
 */

const worker = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')

const config = `
worktrees: { spares: 0 }
fleet:
  session: tmux
  pools:
    workers: { command: 'sh ${worker}', max: 3, names: [alder, beech, cedar], done: push }
`

type Terminal = {
  readonly screen: () => string
  /** Waits for what should appear. */
  readonly shows: (what: string | RegExp) => Promise<string>
  readonly press: (...keys: readonly string[]) => void
  readonly type: (text: string) => void
  readonly resize: (columns: number, rows: number) => void
  readonly close: () => void
  /** Every byte that the program sent to it. */
  readonly output: () => string
}

/** A shell in a terminal of 80 × 24, with job control and our variables. */
const openTerminal = (world: CliWorld, cwd: string): Terminal & Disposable => {
  const socket = world.box.path('terminal')
  const tmux = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-S', socket, '-f', '/dev/null', '-u', ...args], {
      cwd,
      env: { ...world.env, TERM: 'screen-256color' },
      encoding: 'utf8',
    })
  const raw = world.box.path('output.raw')
  writeFileSync(raw, '')
  tmux('new-session', '-d', '-x', '80', '-y', '24', '-s', 'person', 'exec sh -i')
  tmux('pipe-pane', '-t', 'person', `exec cat >>'${raw}'`)
  const screen = (): string => tmux('capture-pane', '-p', '-t', 'person')
  let isOpen = true
  const close = (): void => {
    if (isOpen) tmux('kill-server')
    isOpen = false
  }
  return {
    screen,
    shows: async (what) => {
      await expect.poll(screen).toMatch(what)
      return screen()
    },
    press: (...keys) => void tmux('send-keys', '-t', 'person', ...keys),
    type: (text) => void tmux('send-keys', '-t', 'person', '-l', text),
    resize: (columns, rows) => void tmux('resize-window', '-t', 'person', '-x', String(columns), '-y', String(rows)),
    output: () => readFileSync(raw, 'utf8'),
    close,
    [Symbol.dispose]: close,
  }
}

const watching = `${main} fleet watch`
const watch = `'${process.execPath}' '${main}' fleet watch`

const pidOf = (words: string): number => {
  const pids = execFileSync('pgrep', ['-f', words], { encoding: 'utf8' }).trim().split('\n')
  expect(pids).toHaveLength(1)
  return Number(pids[0])
}

testInTmux('a person watches the fleet, acts on it, and gets the terminal back', async () => {
  using world = makeCliWorld({ config })
  const repo = world.box.repo('app')
  const coppice = <T>(...words: string[]): Promise<T> => world.json<T>(repo.path, 0, ...words)
  await coppice('item', 'add', 'Fix 日本語 login')
  await coppice('item', 'add', 'Docs')
  const one = await coppice<{ environment: { path: string } }>('sling', '1')
  await coppice('sling', '2')
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(async () => void (await world.run(repo.path, 'fleet', 'down', '--grace', '0')))
  using terminal = openTerminal(world, repo.path)
  const { shows, press, type, screen } = terminal
  const start = async (): Promise<void> => {
    type('clear; echo BEFORE')
    press('Enter')
    type(watch)
    press('Enter')
    await shows(/alder +working +1 Fix 日本語 login/)
  }
  /** The screen from before, with a cursor and a shell that takes lines. */
  const isRestored = async (code: number): Promise<void> => {
    expect(await shows('BEFORE')).not.toContain('working')
    type('echo "ended $?"')
    press('Enter')
    await shows(`ended ${code}`)
    type("stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo | tr '\\n' +")
    press('Enter')
    await shows('icanon+echo+')
  }

  await start()
  await shows(/beech +working +2 Docs .*clean +0/)
  // What one agent does shows: a file, and that it needs somebody.
  writeFileSync(join(one.environment.path, 'half.txt'), 'half\n')
  await coppice('item', 'park', '2', 'v1 or v2?')
  expect((await shows('1 needs you')).split('\n')[2]).toMatch(/beech +working +2 Docs +.*v1 or v2\?/)

  // Peek and nudge.
  press('p')
  await shows('ready alder 1')
  press('n')
  type(String.raw`printf '\033]0;pwned\007\033[41mhello %s\n' $((40 + 2))`)
  await shows(/hello %s/)
  press('Enter')
  await shows(/^hello 42/m)
  press('Escape')
  await shows(/AGENT +STATE/)

  // Nothing that an agent prints reaches this terminal as it is.
  expect(terminal.output()).toContain('pwned')
  for (const sequence of ['\u001b]0;pwned', '\u001b[41m']) expect(terminal.output()).not.toContain(sequence)

  // Attach, and come back.
  press('a')
  await shows(/\[coppice-alder\]/)
  expect(screen()).toContain('hello 42')
  press('C-b', 'd')
  await shows('Detached from alder.')

  // Stop asks first; undo says what it will undo.
  press('s')
  await shows('Stop alder?')
  press('n')
  await shows('Cancelled.')
  press('s')
  await shows('Stop alder?')
  press('y')
  await shows('Stopped alder. Its worktree and item are kept.')
  await shows(/alder +stopped/)
  expect(existsSync(join(one.environment.path, 'half.txt'))).toBe(true)
  press('u')
  await shows('Undo: start alder again')
  press('y')
  await shows('Started alder.')
  await shows(/alder +working .*1 file/)

  // Smaller, larger, help.
  terminal.resize(40, 8)
  await shows(/^> alder +working *$/m)
  terminal.resize(100, 30)
  await shows(/AGENT +STATE +ITEM +BRANCH/)
  press('?')
  await shows('Keys')
  press('Escape')
  await shows(/AGENT +STATE/)

  // Suspended and continued, with the terminal as the shell needs it in between.
  press('C-z')
  await shows(/Stopped|suspended/)
  expect(screen()).toContain('BEFORE')
  terminal.resize(80, 24)
  type('fg')
  press('Enter')
  await shows(/AGENT +STATE +ITEM +DIRTY/)
  press('q')
  await isRestored(0)

  // However it ends.
  await start()
  process.kill(pidOf(watching), 'SIGTERM')
  await isRestored(143)
  await start()
  const pid = pidOf(watching)
  terminal.close()
  await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false)
})

testInTmux('an exception that nobody catches restores the terminal before it is reported', async () => {
  using world = makeCliWorld()
  using terminal = openTerminal(world, world.box.root)
  const { shows, press, type } = terminal
  const screen = resolve(import.meta.dirname, '../../src/cli/fleet-watch/screen.ts')
  const script = world.box.path('crash.ts')
  writeFileSync(
    script,
    `import { openScreen } from ${JSON.stringify(screen)}
const { stdin: input, stdout: output } = process
// As Coppice reports it.
process.on('uncaughtException', (error) => {
  process.stderr.write(String(error) + '\\n')
  process.exit(1)
})
const shown = openScreen({
  input,
  output,
  paint: (_style, text) => text,
  onKey: () => { throw new Error('it broke') },
  onResized: () => undefined,
  onLost: () => undefined,
})
shown.draw({ lines: [[{ text: 'at work' }]], cursor: undefined })
`,
  )
  type('clear; echo BEFORE')
  press('Enter')
  type(`'${process.execPath}' '${script}'`)
  press('Enter')
  await shows('at work')
  press('x')
  const left = await shows('Error: it broke')
  expect(left).toContain('BEFORE')
  expect(left).not.toContain('at work')
  type("stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo | tr '\\n' +")
  press('Enter')
  await shows('icanon+echo+')
})

test('without a terminal, it names the command that does without', async () => {
  using world = makeCliWorld()
  const plain = await world.run(world.box.root, 'fleet', 'watch')
  expect(plain).toMatchObject({ code: 2, out: '' })
  expect(plain.err).toBe(
    'coppice: fleet watch needs a terminal.\nUse `coppice fleet status` instead, with --json for programs.\n',
  )
  expect(await world.json(world.box.root, 2, 'fleet', 'watch')).toMatchObject({ error: { code: 'usage' } })
})
