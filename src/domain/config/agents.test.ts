import { expect, test } from 'vitest'
import { type Env, resolveSettings } from './config.ts'

const settings = (homeText: string, env: Env = {}) =>
  resolveSettings({ homeFile: '/home/ada/.coppice/config.yaml', homeText, env: { HOME: '/home/ada', ...env } })

test('agents that speak ACP have a name, a command, and the variables that they are granted', async () => {
  const text = `agent:
  acp:
    gemini: { command: [gemini, --acp], variables: [GEMINI_API_KEY, NOT_SET] }
    open-code: { command: [opencode, acp], forks: true }
`
  const { acpAgents } = await settings(text, { GEMINI_API_KEY: 'k', OPENCODE_KEY: 'not asked for' })
  expect(acpAgents).toEqual([
    { name: 'gemini', command: ['gemini', '--acp'], variables: { GEMINI_API_KEY: 'k' }, forks: false },
    { name: 'open-code', command: ['opencode', 'acp'], variables: {}, forks: true },
  ])
})

test.each([
  'claude: { command: [x] }',
  'Gemini: { command: [x] }',
  'gemini: [gemini, --acp]',
  'gemini: { command: gemini --acp }',
  'gemini: { command: [] }',
  'gemini: { command: [""] }',
  'gemini: { command: [x], other: 1 }',
  'gemini: { command: [x], variables: [COPPICE_DATABASE_URL] }',
  'gemini: { command: [x], variables: [github_token] }',
  'gemini: { command: [x], variables: [SLACK_BOT_TOKEN] }',
  'gemini: { command: [x], variables: [GIT_DIR] }',
  'gemini: { command: [x], variables: ["A=B"] }',
  'gemini: { command: [x], forks: maybe }',
  'gemini:',
])('an agent that is not right is an error which names the key and what would be right: %s', async (entry) => {
  await expect(settings(`agent:\n  acp:\n    ${entry}\n`)).rejects.toMatchObject({
    code: 'config-invalid',
    message: expect.stringContaining('config.yaml line 3: agent.acp is'),
    remedy: expect.stringContaining('command: [gemini, --acp]'),
  })
})

test('permissions are allow, ask or deny; budgets are amounts, and zero is one', async () => {
  const text = 'agent: { permissions: ask }\nbudget: { conversationUsd: 2.5, dayUsd: 0, conversationTurns: 7 }\n'
  expect(await settings(text)).toMatchObject({
    agentPermissions: 'ask',
    budgetConversationUsd: 2.5,
    budgetDayUsd: 0,
    budgetConversationTurns: 7,
    budgetDayTurns: undefined,
  })
  await expect(settings('agent: { permissions: maybe }')).rejects.toThrow('agent.permissions is "maybe"')
  await expect(settings('budget: { dayTurns: 1.5 }')).rejects.toThrow('budget.dayTurns is 1.5')
  await expect(settings('budget: { dayUsd: -1 }')).rejects.toThrow('budget.dayUsd is -1')
})
