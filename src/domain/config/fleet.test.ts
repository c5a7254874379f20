import { describe, expect, test } from 'vitest'
import { resolveSettings } from './config.ts'
import { defaultPool } from './fleet.ts'

const settings = (homeText: string) => resolveSettings({ homeText, homeFile: 'config.yaml', env: {} })

describe('pools', () => {
  test('there is one without any configuration', async () => {
    const { pools, fleetSession, maxAgents, patrolSeconds } = await settings('')
    expect(pools).toEqual([defaultPool])
    expect({ fleetSession, maxAgents, patrolSeconds }).toEqual({
      fleetSession: 'auto',
      maxAgents: 20,
      patrolSeconds: 30,
    })
    expect(defaultPool).toMatchObject({ name: 'workers', min: 0, max: 5, pull: false, done: 'auto', wake: 'resume' })
  })

  test('every key is read', async () => {
    const { pools, ...rest } = await settings(`
fleet:
  session: process
  patrolSeconds: 10
  maxAgents: 7
  pools:
    fast:
      agent: claude
      codebases: [app, web]
      min: 1
      max: 3
      pull: true
      done: release
      isolation: clone
      names: [ada, grace]
      prompt: "Do {{item.title}}"
      wake: fresh
      dependsOn: [slow]
      drainTimeout: 90s
    slow:
      command: sh agent.sh
`)
    expect(rest).toMatchObject({ fleetSession: 'process', patrolSeconds: 10, maxAgents: 7 })
    expect(pools).toEqual([
      {
        name: 'fast',
        agent: 'claude',
        command: undefined,
        codebases: ['app', 'web'],
        min: 1,
        max: 3,
        pull: true,
        done: 'release',
        isolation: 'clone',
        names: ['ada', 'grace'],
        prompt: 'Do {{item.title}}',
        wake: 'fresh',
        dependsOn: ['slow'],
        drainTimeoutMs: 90_000,
      },
      { ...defaultPool, name: 'slow', command: 'sh agent.sh' },
    ])
  })

  test.each([
    ['max: 0', /line 4: fleet\.pools\.a\.max is 0.*$/, /whole number from 1/],
    ['maxx: 3', /line 4: unknown setting "maxx"/, /did you mean "max"/],
    ['min: 9', /line 4: fleet\.pools\.a\.min doesn't fit/, /not be more than max \(5\)/],
    ['names: [UPPER]', /line 4: fleet\.pools\.a\.names/, /trees, rivers, stars/],
    ['drainTimeout: 5', /line 4: fleet\.pools\.a\.drainTimeout is 5/, /such as 5m/],
    ['dependsOn: [b]', /line 4: fleet\.pools\.a\.dependsOn doesn't fit/, /"b" must be another pool/],
    ['dependsOn: [a]', /line 4/, /"a" must be another pool/],
    ['agent: x\n      command: y', /line 5: fleet\.pools\.a\.command doesn't fit/, /not both/],
    ['wake: later', /line 4/, /resume, fresh/],
  ])('%s is an error that says where and what would be right', async (line, message, remedy) => {
    await expect(settings(`fleet:\n  pools:\n    a:\n      ${line}\n`)).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringMatching(message),
      remedy: expect.stringMatching(remedy),
    })
  })

  test('a bad name, a pool without a section, and a circle are errors too', async () => {
    await expect(settings('fleet:\n  pools:\n    Bad Name:\n      max: 1\n')).rejects.toThrow(/a name in fleet\.pools/)
    await expect(settings('fleet:\n  pools:\n    a: 3\n')).rejects.toThrow(/"fleet\.pools\.a" must be a section/)
    await expect(settings('fleet:\n  pools: [a]\n')).rejects.toThrow(/"fleet\.pools" must be a section/)
    await expect(
      settings('fleet:\n  pools:\n    a:\n      dependsOn: [b]\n    b:\n      dependsOn: [a]\n'),
    ).rejects.toMatchObject({ remedy: expect.stringContaining('circle') })
    expect((await settings('fleet:\n  pools:\n')).pools).toEqual([defaultPool])
    // A pool that was commented out but for its name has the defaults.
    expect((await settings('fleet:\n  pools:\n    a:\n')).pools).toEqual([{ ...defaultPool, name: 'a' }])
  })
})
