import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { makeServerWorld, onDatabase, type Said } from '../../helpers/server-process.ts'

const program = resolve(import.meta.dirname, '../../helpers/acp/agent.ts')

/** An agent that speaks ACP and says that each run cost 25 cents. */
const config = (traces: string, budget: string): string => `worktrees: { spares: 0 }
agent:
  default: tester
  acp: { tester: { command: ["${process.execPath}", "${program}", reports, "${traces}"] } }
budget: { ${budget} }
`
const texts = (said: readonly Said[]): string[] => said.map(({ role, text }) => `${role}: ${text}`)
const answers = (said: readonly Said[]): number => said.filter(({ role }) => role === 'agent').length

onDatabase('postgres', (database) => {
  test('at the limit of money a message is kept, over a crash too, commands go on, and a raise runs what was kept, in order; a day has its limits in turns', async () => {
    await using world = makeServerWorld({ env: await database() })
    const traces = world.box.path('traces')
    mkdirSync(traces)
    writeFileSync(join(world.home, 'config.yaml'), config(traces, 'conversationUsd: 0.3, dayTurns: 5'))
    await world.project()
    const killed = await world.serve()
    expect(answers(await killed.ask('T1', 'one'))).toBe(1)
    expect(answers(await killed.ask('T1', 'two'))).toBe(1)
    const third = await killed.ask('T1', 'three')
    expect(texts(third)).toEqual([
      'system: This conversation has spent $0.500; its limit is $0.300. Your message is on hold. To run it, use `/budget raise 2` (or another amount).',
    ])
    expect(answers(await killed.ask('T1', 'four'))).toBe(0)
    await killed.stop('SIGKILL')
    const server = await world.serve()
    expect(texts(await server.ask('T1', '/budget'))[0]).toMatch(
      /Conversation.*\$0\.500, 2 turns \(limit \$0\.300\)[\s\S]*On hold.*2 messages/,
    )
    expect(answers(await server.ask('T2', 'another conversation has its own'))).toBe(1)
    expect(texts(await server.ask('T1', '/budget raise nothing'))[0]).toMatch(/Invalid amount "nothing"/)
    const raised = await server.ask('T1', '/budget raise $0.40')
    expect(texts(raised)[0]).toMatch(/^system: Limit raised\. Running 2 held messages now\./)
    // 0.50 of 0.70: one more run, and then the other one waits again.
    expect(answers(raised)).toBe(1)
    expect(texts(raised).at(-1)).toMatch(/has spent \$0\.750; its limit is \$0\.700/)
    expect(answers(await server.ask('T1', '/budget raise 5'))).toBe(1)
    expect(answers(await server.messages('T1'))).toBe(4)

    // All conversations together, in turns: of five none is left.
    expect(texts(await server.ask('T3', 'three')).at(-1)).toMatch(
      /^system: All conversations together have spent 5 turns today; the daily limit is 5 turns\./,
    )
    expect(answers(await server.ask('T3', '/budget raise 1 turn'))).toBe(1)
    expect(answers(await server.ask('T2', 'four'))).toBe(0)
    await server.stop()
  })
})
