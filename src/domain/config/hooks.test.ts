import { describe, expect, test } from 'vitest'
import { resolveSettings } from './config.ts'
import { hookKey, hookLabel } from './hooks.ts'

const settings = (homeText: string) => resolveSettings({ homeText, homeFile: 'config.yaml', env: {} })

describe('hooks', () => {
  test('there are none without any configuration', async () => {
    expect((await settings('')).hooks).toEqual([])
    expect((await settings('hooks:\n')).hooks).toEqual([])
    expect((await settings('hooks: []\n')).hooks).toEqual([])
  })

  test('every key is read', async () => {
    const { hooks, eventDays } = await settings(`
cleanup: { eventDays: 7 }
hooks:
  - command: notify-send "$COPPICE_EVENT_TEXT"
  - on: [landed, needs-you]
    webhook: https://example.com/secret-path
    secret: s3cret
    timeout: 90s
  - on: mass-death
    conversation: slack:C123:456.7
`)
    expect(eventDays).toBe(7)
    expect(hooks).toEqual([
      {
        on: ['needs-you'],
        action: { kind: 'command', command: 'notify-send "$COPPICE_EVENT_TEXT"' },
        timeoutMs: 30_000,
      },
      {
        on: ['landed', 'needs-you'],
        action: { kind: 'webhook', url: 'https://example.com/secret-path', secret: 's3cret' },
        timeoutMs: 90_000,
      },
      {
        on: ['mass-death'],
        action: { kind: 'conversation', platform: 'slack', conversationId: 'C123:456.7' },
        timeoutMs: 30_000,
      },
    ])
    expect(hooks.map(hookLabel)).toEqual([
      'hook 1 (command)',
      'hook 2 (webhook to example.com)',
      'hook 3 (message to slack:C123:456.7)',
    ])
    expect(new Set(hooks.map(hookKey)).size).toBe(3)
  })

  test.each([
    ['hooks: true', 'config.yaml line 1: "hooks" must be a list', /start each entry with "- "/],
    ['hooks: [7]', 'config.yaml line 1: "hooks[0]" must be a section with keys', /valid keys are on, command/],
    ['hooks:\n  - command: x\n    comand: y', 'config.yaml line 3: unknown setting "comand"', /did you mean "command"/],
    ['hooks:\n  - on: lunch\n    command: x', 'config.yaml line 2: hooks[0].on is "lunch"', /needs-you, started/],
    ['hooks:\n  - on: []', "config.yaml line 2: hooks[0].on doesn't fit", /needs a command, a webhook or a conv/],
    ['hooks:\n  - command: x\n  - command: ""', 'config.yaml line 3: hooks[1].command is ""', /a shell command/],
    [
      'hooks:\n  - command: x\n    webhook: https://example.com',
      "config.yaml line 3: hooks[0].webhook doesn't fit",
      /one action, not both a command and a webhook/,
    ],
    ['hooks:\n  - command: x\n    secret: y', "config.yaml line 3: hooks[0].secret doesn't fit", /only a webhook/],
    ['hooks:\n  - conversation: a:b\n    timeout: 9s', "config.yaml line 3: hooks[0].timeout doesn't fit", /only a/],
    ['hooks:\n  - command: x\n    timeout: 0s', 'config.yaml line 3: hooks[0].timeout is "0s"', /from 1 seconds/],
    ['hooks:\n  - conversation: slack', 'config.yaml line 2: hooks[0].conversation is "slack"', /platform:id/],
    [
      'hooks:\n  - command: x\n  - command: y\n  - on: landed\n    command: x',
      "config.yaml line 5: hooks[2].command doesn't fit",
      /the same as hooks\[0\]/,
    ],
  ])('%j is refused', async (text, message, remedy) => {
    await expect(settings(text)).rejects.toMatchObject({
      code: 'config-invalid',
      message,
      remedy: expect.stringMatching(remedy) as string,
    })
  })

  test.each(['file:///etc/passwd', 'ftp://example.com/t0ken', 'https://me:t0ken@example.com', 't0ken', 7])(
    'a webhook to %j is refused, and the URL not shown',
    async (url) => {
      const refused: unknown = await settings(JSON.stringify({ hooks: [{ webhook: url }] })).catch(
        (error: unknown) => error,
      )
      expect(refused).toMatchObject({
        code: 'config-invalid',
        message: expect.stringContaining('hooks[0].webhook is not usable') as string,
      })
      expect(JSON.stringify([refused, String(refused)])).not.toMatch(/t0ken|passwd/)
    },
  )

  test('too many are refused', async () => {
    const hooks = Array.from({ length: 51 }, (_, i) => ({ command: `echo ${i}` }))
    await expect(settings(JSON.stringify({ hooks }))).rejects.toMatchObject({
      message: expect.stringContaining('51') as string,
    })
  })
})
