import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chatContext } from '../../test/helpers/chat.ts'
import { firstCommit, type Template } from '../../test/helpers/repo.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import { createCommandAgent } from '../agents/command/command.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { writableCgroup } from '../process/cgroup.ts'
import { identifySync, liveness, selfIdentity } from '../process/identity.ts'
import { isAnyMarked, markedProcesses } from '../process/marked-processes.ts'
import { type Conversations, createConversations } from './conversations.ts'
import { createEndRun } from '../runs/end-run.ts'
import { leftNotice, stopNotice } from '../commands/stop.ts'
import { survivorsOf } from '../runs/leftovers.ts'
import { createOutbox } from './outbox/outbox.ts'
import { createStoreQueue } from './inbox/store-queue.ts'
import { nothingRunning } from '../runs/stop-run.ts'
import { untilSleeps } from '../../test/helpers/shell.ts'

/** Conversations with a real command as their agent: `agent.sh`, which each test writes. */

const base = writableCgroup()
const withFile: Template = (repo) => {
  firstCommit(repo)
  repo.commit('a.txt', 'a\n')
}

let world: World
let engines: Conversations[] = []
let people: number[] = []

beforeEach(async () => {
  world = await makeWorld({ template: withFile })
})
afterEach(async () => {
  for (const engine of engines) await engine.stop(0)
  for (const pid of [...pids(), ...people]) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  engines = []
  people = []
  await world[Symbol.asyncDispose]()
})

const file = (name: string): string => world.box.path(name)

type EngineOptions = { readonly cgroup?: string | undefined; readonly tickMs?: number }

const startEngine = async ({ cgroup, tickMs = 3_600_000 }: EngineOptions = {}): Promise<Conversations> => {
  const { context } = world
  const agent = createCommandAgent({
    command: `sh '${file('agent.sh')}'`,
    contextDirectory: file('contexts'),
    ...context,
  })
  const queue = createStoreQueue({ ...context, endRun: createEndRun(context) })
  const talk = { ...chatContext(world, [agent]), queue, cgroup }
  const outbox = createOutbox({ ...context, deliveries: new Map(), changes: talk.changes, redact: talk.redact })
  const engine = createConversations(talk, { outbox, tickMs })
  engines.push(engine)
  await engine.start()
  return engine
}

const agentThat = (script: string): void => writeFileSync(file('agent.sh'), script)

const say = async (engine: Conversations, text: string): Promise<string> =>
  (
    await engine.accept({
      platform: 'test',
      conversationId: 'T1',
      deliveryId: randomUUID(),
      kind: 'message',
      text,
      details: {},
    })
  ).id

const saidAbout = async (id: string): Promise<string[]> =>
  (await world.context.store.outbox.ofConversation({ platform: 'test', conversationId: 'T1' }, 100))
    .filter(({ inboxId }) => inboxId === id)
    .map(({ text }) => text.trim())

const until = async <T>(look: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> => {
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    await delay(10)
  }
}

const done = async (id: string): Promise<string[]> => {
  await until(async () => (await world.context.store.inbox.get(id))?.state === 'done')
  return saidAbout(id)
}
const ask = async (engine: Conversations, text: string): Promise<string[]> => done(await say(engine, text))
const watches = () => world.context.store.runWatches.ofHost(world.context.host)

/** Shell: a child without parent, session or environment of the run. Its pid is the last line of `pids`. */
const escaped = (script: string): string => `
cat > '${file('escaped.sh')}' <<'END'
echo $$ >> '${file('pids')}'
${script}
END
env -i PATH="$PATH" HOME="$HOME" setsid sh -c "sh '${file('escaped.sh')}' &" < /dev/null > /dev/null 2>&1
while [ ! -s '${file('pids')}' ]; do sleep 0.01; done
${script.includes('exec sleep') ? untilSleeps(`$(tail -n 1 '${file('pids')}')`) : ''}`

const pids = (): number[] =>
  existsSync(file('pids')) ? readFileSync(file('pids'), 'utf8').trim().split('\n').map(Number) : []
const isAlive = (pid: number): boolean => {
  const identity = identifySync(pid)
  return identity !== undefined && liveness(identity) === 'alive'
}
const waits = (name: string): string => `while [ ! -e '${file(name)}' ]; do sleep 0.02; done`
const open = (name: string): void => writeFileSync(file(name), '')

/** A person's own shell in a directory, which nothing of ours has started. */
const personIn = async (directory: string): Promise<number> => {
  const started = spawnSync('sh', ['-c', `sleep 300 > /dev/null 2>&1 & ${untilSleeps('$!')}; echo $!`], {
    cwd: directory,
    encoding: 'utf8',
  })
  const pid = Number(started.stdout)
  people.push(pid)
  return pid
}
const treeOf = async (): Promise<string> =>
  until(
    async () =>
      (await world.context.store.environments.live(world.codebase.id)).find(({ status }) => status === 'active')?.path,
  )

const places = [
  { how: 'with a cgroup', cgroup: base },
  { how: 'without cgroups', cgroup: undefined },
].filter(({ how, cgroup }) => how !== 'with a cgroup' || cgroup !== undefined)

describe.each(places)('what an agent leaves behind, $how', ({ cgroup }) => {
  const cgroupsHere = (): string[] =>
    cgroup === undefined ? [] : readdirSync(cgroup).filter((name) => name.includes(marks.at(-1) ?? '-'))
  let marks: string[] = []
  const note = async (): Promise<void> => {
    marks = (await watches()).map(({ data }) => data.mark.id)
  }

  test('/stop ends a child with a cleaned environment, and only then says that all have ended', async () => {
    agentThat(`${escaped('exec sleep 300')}\ntouch '${file('runs')}'; sleep 300`)
    const engine = await startEngine({ cgroup })
    const id = await say(engine, 'work')
    await until(() => existsSync(file('runs')))
    await note()
    expect(await ask(engine, '/stop')).toEqual(['Stopped: the agent and all processes it started have ended.'])
    expect(pids().map(isAlive)).toEqual([false])
    expect((await done(id)).at(-1)).toBe('Stopped. The work so far is in the worktree.')
    expect([await watches(), cgroupsHere()], 'no debris').toEqual([[], []])
  })

  test('a run that ends by itself names what it left running; /stop ends that', async () => {
    agentThat(`${escaped('exec sleep 300')}\necho done`)
    const engine = await startEngine({ cgroup })
    const said = await ask(engine, 'work')
    const [pid = 0] = pids()
    expect(said.slice(-2)).toEqual([
      'done',
      `The agent has ended, but it left 1 process running:\n- ${pid} \`sleep\`\nRun \`/stop\` to end them.`,
    ])
    expect(isAlive(pid)).toBe(true)
    await note()
    expect(await ask(engine, '/stop')).toEqual(['Stopped: the agent and all processes it started have ended.'])
    expect([isAlive(pid), cgroupsHere()]).toEqual([false, []])
    expect(await ask(engine, '/stop')).toEqual(['Nothing is running here.'])
  })

  test('a child that forks and ends all the time is reported and ended by /stop, which tells the truth', async () => {
    writeFileSync(file('relay.sh'), `trap '' TERM HUP; touch '${file('relayed')}'; setsid bash '${file('relay.sh')}' &`)
    const relay = `env -i PATH="$PATH" setsid bash '${file('relay.sh')}' < /dev/null > /dev/null 2>&1`
    agentThat(`${relay}\n${waits('relayed')}\necho done`)
    const engine = await startEngine({ cgroup })
    expect((await ask(engine, 'work')).at(-1)).toMatch(
      /^The agent has ended, but .* running:[^]*\nRun `\/stop` to end|no process ID/,
    )
    await note()
    const marked = async () => isAnyMarked(await markedProcesses(marks.map((id) => ({ id, cgroup: undefined }))))
    expect([marks.length, await marked()]).toEqual([1, true])
    expect(await ask(engine, '/stop')).toEqual(['Stopped: the agent and all processes it started have ended.'])
    expect([await marked(), cgroupsHere()]).toEqual([false, []])
    expect(await ask(engine, '/stop')).toEqual(['Nothing is running here.'])
  })

  test('an orderly shutdown ends it, and the message runs again', async () => {
    agentThat(`${escaped('exec sleep 300')}\ntouch '${file('runs')}'; ${waits('go')}; echo again`)
    const engine = await startEngine({ cgroup })
    const id = await say(engine, 'work')
    await until(() => existsSync(file('runs')))
    await note()
    await engine.stop(0)
    expect([pids().map(isAlive), cgroupsHere()]).toEqual([[false], []])
    agentThat('echo again')
    await startEngine({ cgroup })
    expect((await done(id)).at(-1)).toBe('again')
    expect(await watches()).toEqual([])
  })
})

describe('what setup leaves behind', () => {
  /** Setup leaves a server that has lost its environment, session and parent. */
  const engineWithSetup = async (): Promise<Conversations> => {
    await world[Symbol.asyncDispose]()
    world = await makeWorld({
      context: { approve: () => Promise.resolve(true) },
      prepare: (repo, box) => {
        const started = `sh ${box.path('setup.sh')}`
        repo.commit('.coppice/config.yaml', `worktree:\n  setup: [${JSON.stringify(started)}]\n`)
      },
    })
    writeFileSync(file('setup.sh'), `cd /${escaped('exec sleep 300')}`)
    return startEngine()
  }

  test('is named when the worktree is made and by /stop, stays while an agent may need it, and ends with the next /stop', async () => {
    const engine = await engineWithSetup()
    agentThat(`touch '${file('runs')}'; ${waits('go')}; echo done`)
    const id = await say(engine, 'work')
    await until(() => existsSync(file('runs')))
    const [pid = 0] = pids()
    // Another conversation in the same worktree ends nothing that the agent may need.
    const { store } = world.context
    const first = await store.conversations.find('test', 'T1')
    if (first === undefined) throw new Error('the conversation is gone')
    await store.conversations.ensure({ ...first, id: randomUUID(), conversationId: 'T2' })
    expect(await engine.stopRun({ platform: 'test', conversationId: 'T2' })).toMatchObject({
      outcome: 'nothing-running',
      scripts: { ended: 0, running: [{ pid, command: 'sleep' }] },
    })
    expect(await ask(engine, '/stop')).toEqual([
      [
        'Stopped: the agent and all processes it started have ended.',
        "1 process that the repository's setup or teardown started for this worktree is still running:",
        `- ${pid} \`sleep\``,
        `To end it now, on the server: \`kill -9 ${pid}\``,
      ].join('\n'),
    ])
    expect((await done(id)).join('\n')).toContain(`setup left 1 process running: sleep (${pid})`)
    open('go')
    expect((await ask(engine, 'again')).at(-1), 'it was there before').toBe('done')
    expect(isAlive(pid)).toBe(true)
    expect(await ask(engine, '/stop')).toEqual([
      "No agent is running here.\nEnded 1 process that the repository's setup or teardown had left running.",
    ])
    expect(isAlive(pid)).toBe(false)
    expect(await ask(engine, '/stop')).toEqual(['Nothing is running here.'])
  })
})

test("a person's own processes in the worktree are named, never ended", async () => {
  const engine = await startEngine()
  agentThat('echo hello')
  await ask(engine, 'hello')
  const tree = await treeOf()
  const editor = await personIn(tree)
  agentThat(`touch '${file('runs')}'; sleep 300`)
  const id = await say(engine, 'work')
  await until(() => existsSync(file('runs')))
  const shell = await personIn(tree)
  const elsewhere = await personIn(world.box.root)
  const [said = ''] = await ask(engine, '/stop')
  expect(said).toBe(
    [
      'Stopped: the agent and all processes it started have ended.',
      '1 process in the worktree started after the agent did and may be yours:',
      `- ${shell} \`sleep\``,
      `If not, on the server: \`kill ${shell}\``,
    ].join('\n'),
  )
  expect([editor, shell, elsewhere].map(isAlive)).toEqual([true, true, true])
  await done(id)
})

test('a child that has shed every mark on purpose is named, since it works in the worktree', async () => {
  const shed = 'ulimit -S -w unlimited 2>/dev/null || ulimit -S -x unlimited; exec sleep 300'
  agentThat(`${escaped(shed)}\ntouch '${file('runs')}'; sleep 300`)
  const engine = await startEngine()
  await say(engine, 'work')
  await until(() => existsSync(file('runs')))
  expect(await ask(engine, '/stop')).toEqual([expect.stringContaining(`may be yours:\n- ${pids()[0]} \`sleep\``)])
  expect(pids().map(isAlive)).toEqual([true])
})

test('/stop says what it could not end, and how to', () => {
  const own = [{ pid: 7, startTime: 'x', command: 'node' }]
  const stopped = { ...nothingRunning, outcome: 'stopped' } as const
  expect(stopNotice({ ...stopped, left: { own, unknown: [] } })).toBe(
    "Stopped the agent, but 1 process it started couldn't be stopped:\n- 7 `node`\nOn the server, try: `kill -9 7`",
  )
  const unnamed = { own: [], unknown: [], unnamed: true } as const
  const noPid = 'Coppice has no process ID for it, because it keeps forking or runs in another PID namespace'
  expect(stopNotice({ ...stopped, left: unnamed })).toBe(
    `Stopped the agent, but something it started couldn't be stopped: ${noPid}. Run \`/stop\` again; if that doesn't help, restart the machine.`,
  )
  expect(leftNotice(unnamed)).toBe(
    `The agent has ended, but something it started is still running: ${noPid}. Run \`/stop\` to end it.`,
  )
  expect(stopNotice({ ...nothingRunning, scripts: { ended: 0, running: [], unnamed: true } })).toMatch(
    /^No agent is running here\.\nSomething that the repository's setup or teardown started .* is still running/,
  )
  expect(stopNotice({ ...stopped, left: { own: [], unknown: [], problem: 'no /proc' } })).toContain(
    "Coppice couldn't check which processes the agent left running: no /proc",
  )
})

test('who survived a kill counts as left, also when nobody can be named', async () => {
  const self = selfIdentity()
  const ended = { pid: 4_194_305, startTime: 'long ago' }
  const survivors = (...identities: readonly ProcessIdentity[]) => survivorsOf({ outcome: 'survivors', identities }, [])
  expect(await survivors()).toEqual({ own: [], unknown: [], unnamed: true })
  expect(await survivors(ended)).toEqual({ own: [], unknown: [], unnamed: true })
  expect(await survivors(self, ended)).toEqual({ own: [{ ...self, command: expect.any(String) }], unknown: [] })
  expect(await survivorsOf({ outcome: 'dead' }, [])).toEqual({ own: [], unknown: [] })
})

describe('git’s own files and the shared checkout', () => {
  const config = (): string => join(world.repo.commonDir, 'config')
  const evil = '[core]\n\tfsmonitor = /evil\n'

  test('what a leftover process changes after the run is reported without another message', async () => {
    agentThat(
      `${escaped(
        [
          waits('go'),
          `printf '[core]\\n\\tfsmonitor = /evil\\n' >> '${config()}'`,
          `echo evil > '${join(world.repo.commonDir, 'hooks/post-checkout')}'`,
          `echo edited >> '${join(world.repo.path, 'a.txt')}'`,
        ].join('\n'),
      )}\necho done`,
    )
    const engine = await startEngine({ tickMs: 50 })
    const id = await say(engine, 'work')
    expect((await done(id)).at(-1)).toMatch(/left \d process/)
    open('go')
    const late = await until(async () => {
      const said = await saidAbout(id)
      return said.some((text) => text.includes('fsmonitor')) && said.slice(3)
    })
    expect(late.join('\n')).toContain('changed while processes of an earlier run may still have been running')
    expect(late.join('\n')).toContain('- changed `a.txt`')
    expect(late.join('\n')).toContain("Git's own files changed between runs. The change may be yours:")
    expect(late.join('\n')).toContain('the hook `post-checkout` was added')
    await until(async () => (await watches()).length === 0)
    agentThat('echo quiet')
    expect(await ask(engine, 'again'), 'reported once').toEqual(['quiet'])
  })

  test('what a leftover process changes while no server runs is reported when one starts', async () => {
    agentThat(`${escaped(`${waits('go')}; echo edited >> '${join(world.repo.path, 'a.txt')}'`)}\necho done`)
    const engine = await startEngine()
    const id = await say(engine, 'work')
    await done(id)
    await engine.stop(0)
    open('go')
    await until(() => !pids().some(isAlive))
    await startEngine()
    expect(await until(async () => (await saidAbout(id)).find((text) => text.includes('earlier run')))).toContain(
      'a.txt',
    )
    await until(async () => (await watches()).length === 0)
  })

  test('what changed between runs is reported once, by whoever it was; everyday entries and the checkout are not', async () => {
    appendFileSync(config(), '[user]\n\temail = me@example.org\n')
    agentThat('echo fine')
    const engine = await startEngine()
    const [, ...first] = await ask(engine, 'one')
    expect(first, 'the first look has nothing to compare with').toEqual(['fine'])
    const tree = await treeOf()
    const edited = join(world.repo.path, 'a.txt')
    writeFileSync(edited, 'my own edit\n')
    // The tripwire counts what is younger than a few of the kernel's ticks before the run.
    await until(() => Date.now() - lstatSync(edited).ctimeMs > 50)
    world.repo.git('config', 'branch.main.remote', '.')
    world.repo.git('config', 'branch.main.description', 'what it is for')
    world.repo.git('config', 'branch.main.vscode-merge-base', 'origin/main')
    world.repo.git('config', 'submodule.lib.url', 'https://example.org/lib')
    expect(await ask(engine, 'two')).toEqual(['fine'])
    appendFileSync(config(), `${evil}[http]\n\textraHeader = Authorization: Bearer hunter2\n`)
    const admin = world.box.raw(tree, 'rev-parse', '--absolute-git-dir')
    appendFileSync(join(admin, 'config.worktree'), '[core]\n\tpager = /evil\n')
    const [report, ...rest] = await ask(engine, 'three')
    expect(report).toBe(
      [
        "Git's own files changed between runs. The change may be yours:",
        "- the repository's configuration: set `core.fsmonitor = /evil`",
        "- the repository's configuration: set `http.extraHeader = …`",
        "- this worktree's configuration: set `core.pager = /evil`",
        `Coppice doesn't run anything set there, but your own git would. Check \`${world.repo.commonDir}\` before you use it.`,
      ].join('\n'),
    )
    expect(rest).toEqual(['fine'])
    expect(await ask(engine, 'four'), 'once').toEqual(['fine'])
    expect(readFileSync(join(world.context.home, 'coppice.db'), 'latin1')).not.toContain('hunter2')
    world.repo.git('config', '--unset', 'core.fsmonitor')
    expect((await ask(engine, 'five'))[0]).toContain("the repository's configuration: removed `core.fsmonitor = /evil`")
  })

  test('what a stopped or interrupted agent had changed is reported, too', async () => {
    agentThat(
      `printf '[core]\\n\\tfsmonitor = /evil\\n' >> '${config()}'; echo x >> '${join(world.repo.path, 'a.txt')}'; touch '${file('runs')}'; sleep 300`,
    )
    const engine = await startEngine()
    const stopped = await say(engine, 'work')
    await until(() => existsSync(file('runs')))
    await ask(engine, '/stop')
    const said = (await done(stopped)).join('\n')
    expect(said).toContain('changed during the run (by the agent or someone else):\n- changed `a.txt`')
    expect(said).toContain('core.fsmonitor = /evil')
    agentThat(
      `printf '[core]\\n\\tsshCommand = /evil\\n' >> '${config()}'; echo y >> '${join(world.repo.path, 'a.txt')}'; touch '${file('again')}'; sleep 300`,
    )
    const interrupted = await say(engine, 'more')
    await until(() => existsSync(file('again')))
    await engine.stop(0)
    agentThat('echo over')
    await startEngine()
    const after = (await done(interrupted)).join('\n')
    expect(after).toContain('earlier run may still have been running. The change may be yours:\n- changed `a.txt`')
    expect(after).toContain('core.sshCommand = /evil')
  })
})
