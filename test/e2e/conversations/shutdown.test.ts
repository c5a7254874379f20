import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cgroupsOf } from '../../helpers/cgroups.ts'
import { isAlive, makeServerWorld, onDatabase, textsOf, until } from '../../helpers/server-process.ts'
import { untilSleeps } from '../../helpers/shell.ts'

/** Shell: a child without parent, session or environment of the run, whose pid is in the file. */
const escaped = (file: string): string =>
  `env -i PATH="$PATH" setsid sh -c 'sh -c "echo \\$\\$ > ${file}.new; mv ${file}.new ${file}; exec sleep 300" > /dev/null 2>&1 &'; while [ ! -e '${file}' ]; do sleep 0.01; done`

const pidIn = (file: string): number => Number(readFileSync(file, 'utf8'))

onDatabase('postgres', (database) => {
  test('SIGTERM in the middle of a run: nothing more is accepted, the run finishes and is answered', async () => {
    await using world = makeServerWorld({ env: await database() })
    await world.project()
    const gate = world.box.path('gate')
    mkdirSync(gate)
    const agent = `touch '${gate}/began'; while [ -d '${gate}' ] && [ ! -e '${gate}/go' ]; do sleep 0.02; done; echo finished`
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent }, args: ['--grace', '40'] })
    await server.say('long', 'take your time')
    await until('the agent runs', async () => existsSync(join(gate, 'began')) || undefined)
    server.child.kill('SIGTERM')
    await until('it does not call itself ready any more', async () =>
      (await fetch(`${server.url}/healthz`)).status === 503 ? true : undefined,
    )
    const refused = await server.post('/test/message', { conversationId: 'late', message: 'me too' })
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({
      error: { code: 'busy', message: 'Coppice is not accepting messages right now' },
    })
    expect(existsSync(join(world.home, 'server.json')), 'nobody is sent to it any more').toBe(false)
    writeFileSync(join(gate, 'go'), '')
    const ended = await server.exit
    expect(ended.code).toBe(0)
    expect(ended.out).toContain('Stopped. 1 running message finished first.')
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow('fetch failed')

    const next = await world.serve({ env: { COPPICE_AGENT_COMMAND: 'echo never' } })
    await next.quiet()
    expect(textsOf(await next.messages('long')).map((text) => text.trim())).toEqual([
      'take your time',
      expect.stringMatching(/^Working in isolated branch/),
      'finished',
    ])
    expect(await next.messages('late'), 'what was refused was not accepted').toEqual([])
  })
})

onDatabase('sqlite', (database) => {
  test('with a short --grace the run is put back, and answered after the next start as the rerun that it is', async () => {
    await using world = makeServerWorld({ env: await database() })
    await world.project()
    const began = world.box.path('began')
    const context = world.box.path('context')
    const agent = [
      'message=$(cat)',
      'echo "$message $COPPICE_ATTEMPT" >> attempts.txt',
      `cp "$COPPICE_CONTEXT" '${context}'-$message-$COPPICE_ATTEMPT`,
      `if [ ! -e '${began}' ]; then ${escaped(world.box.path('escaped'))}; echo $$ > '${began}.new'; mv '${began}.new' '${began}'; while [ -e '${began}' ]; do sleep 0.05; done; fi`,
      'echo "did $message:"; cat attempts.txt',
    ].join('\n')
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent }, args: ['--grace', '0'] })
    await server.say('long', 'first')
    await server.say('long', 'second')
    const pid = await until('the agent runs', async () =>
      existsSync(began) ? Number(readFileSync(began, 'utf8')) : undefined,
    )
    const ended = await server.stop()
    expect(ended.code).toBe(0)
    expect(ended.out).toContain('1 unfinished message will run again on the next start.')
    expect(isAlive(pid), 'its agent has ended with it').toBe(false)
    expect(isAlive(pidIn(world.box.path('escaped'))), 'and what that had started').toBe(false)

    const next = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    await next.quiet()
    expect(readFileSync(`${context}-first-1`, 'utf8')).toBe('')
    expect(readFileSync(`${context}-first-2`, 'utf8')).toMatch(
      /^Coppice was interrupted while this request was running; this is attempt 2\./,
    )
    expect(readFileSync(`${context}-second-1`, 'utf8'), 'this one had only waited').toBe('')
    const heard = (await next.messages('long')).filter(({ role }) => role !== 'user')
    expect(textsOf(heard).map((text) => text.trim())).toEqual([
      expect.stringMatching(/^Working in isolated branch/),
      'did first:\nfirst 1\nfirst 2',
      'did second:\nfirst 1\nfirst 2\nsecond 1',
    ])
  })

  test('kill -9 in the middle of a run: the next start ends the agent that outlived it and answers the message once', async () => {
    await using world = makeServerWorld({ env: await database() })
    await world.project()
    const began = world.box.path('began')
    const agent = [
      `if [ "$COPPICE_ATTEMPT" = 1 ]; then pwd > '${world.box.path('tree')}'; ${escaped(world.box.path('escaped'))}; echo $$ > '${began}.new'; mv '${began}.new' '${began}'; while [ -e '${began}' ]; do sleep 0.05; done; fi`,
      'echo "attempt $COPPICE_ATTEMPT"; cat "$COPPICE_CONTEXT"',
    ].join('\n')
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    await server.say('long', 'take your time')
    const pid = await until('the agent runs', async () =>
      existsSync(began) ? Number(readFileSync(began, 'utf8')) : undefined,
    )
    // A person's own shell, opened while the agent ran.
    const tree = readFileSync(world.box.path('tree'), 'utf8').trim()
    const person = Number(
      spawnSync('sh', ['-c', `sleep 300 > /dev/null 2>&1 & ${untilSleeps('$!')}; echo $!`], {
        cwd: tree,
        encoding: 'utf8',
      }).stdout,
    )
    await server.stop('SIGKILL')
    expect(isAlive(pidIn(world.box.path('escaped'))), 'it outlives the server').toBe(true)
    const next = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    await next.quiet()
    expect([isAlive(pid), isAlive(pidIn(world.box.path('escaped'))), isAlive(person)]).toEqual([false, false, true])
    process.kill(person)
    const system = (await next.messages('long')).filter(({ role }) => role === 'system')
    expect(textsOf(system).join('\n')).toContain(`may be yours:\n- ${person} \`sleep\``)
    expect(cgroupsOf(world.home), 'nothing of it is left in /sys/fs/cgroup').toEqual([])
    const agents = (await next.messages('long')).filter(({ role }) => role === 'agent')
    expect(textsOf(agents)).toEqual([
      expect.stringMatching(/^attempt 2\nCoppice was interrupted while this request was running/),
    ])
  })
})
