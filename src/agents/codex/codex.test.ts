import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeStage, type Stage, tell } from '../../../test/agents/stage.ts'
import { remedyIn } from '../../../test/helpers/words.ts'
import type { Agent } from '../agent.ts'
import { codexArguments } from './arguments.ts'
import { createCodexAgent } from './codex.ts'

/** Codex by the shape of its command line, as a script; the real one is in test/agents/codex.test.ts. */

let stage: Stage
beforeEach(() => {
  stage = makeStage()
})
afterEach(() => stage[Symbol.dispose]())

/** How `codex sandbox` is called: with the system's name in 0.45.0 to 0.133.0, without it since 0.134.0 (openai/codex). */
const SANDBOX = {
  none: `echo "error: unexpected argument 'true' found" >&2; exit 2`,
  linux: `[ "$2 $3 $4" = "linux -- true" ] || { echo "error: unrecognized subcommand 'true'" >&2; exit 2; }`,
  plain: `[ "$2 $3" = "-- true" ] || { echo "Failed to execvp linux" >&2; exit 101; }`,
}

const answering = [
  `{"type":"thread.started","thread_id":"0199"}`,
  `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"done"}}`,
  `{"type":"turn.completed","usage":{}}`,
]

const codex = (version: string, sandbox: keyof typeof SANDBOX): Agent => {
  const command = stage.box.path('codex.sh')
  const lines = answering.map((line) => `echo '${line}'`).join('; ')
  const script = [
    `printf '%s\\n' "$*" >> '${stage.box.path('calls')}'`,
    'case "$1" in',
    `--version) echo "codex-cli ${version}";;`,
    'login) echo "Logged in using an API key";;',
    `sandbox) ${SANDBOX[sandbox]};;`,
    `exec) cat > '${stage.box.path('stdin')}'; ${lines};;`,
    'esac',
  ]
  writeFileSync(command, `#!/bin/sh\n${script.join('\n')}\n`, { mode: 0o755 })
  return createCodexAgent({
    command,
    sandbox: undefined,
    inContainer: false,
    silenceMs: 60_000,
    clock: Date.now,
    ids: randomUUID,
    ownEnvironment: stage.box.env,
  })
}

test.runIf(process.platform === 'linux').each([
  { version: '0.45.0', form: 'linux' as const },
  { version: '0.133.0', form: 'linux' as const },
  { version: '0.134.0', form: 'plain' as const },
])('Codex $version runs in its sandbox', async ({ version, form }) => {
  expect(await tell(codex(version, form), stage)).toMatchObject({ outcome: 'done', text: 'done' })
  const calls = readFileSync(stage.box.path('calls'), 'utf8')
  expect(calls).toContain('sandbox_mode="workspace-write"')
})

test.runIf(process.platform === 'linux')(
  'a Codex without a sandbox command is refused, with the oldest version that works, until it is updated',
  async () => {
    const agent = codex('0.44.0', 'none')
    expect(await agent.availability()).toMatchObject({ state: 'missing', problem: expect.stringContaining('0.45.0') })
    const told = await tell(agent, stage)
    expect(told).toMatchObject({
      outcome: 'failed',
      problem: 'Codex 0.44.0 is too old: Coppice needs 0.45.0 or newer.',
    })
    expect(remedyIn(told)).toContain('npm install -g @openai/codex@latest')
    codex('0.134.0', 'plain')
    expect(await tell(agent, stage)).toMatchObject({ outcome: 'done' })
  },
)

test.runIf(process.platform === 'linux')(
  'a sandbox that fails in a current Codex is not blamed on its version',
  async () => {
    const told = await tell(codex('0.166.0', 'none'), stage)
    expect(told).toMatchObject({ outcome: 'failed', problem: expect.stringContaining("can't sandbox its commands") })
  },
)

test('images that the user sent are part of the message; those of others are only named', () => {
  const image = (name: string) => {
    const path = stage.box.path(name)
    writeFileSync(path, 'pixels')
    return { path, name, mediaType: 'image/png', bytes: 6 }
  }
  const attachments = [image('a.png'), { ...image('b.png'), fromOthers: true as const }]
  const request = { directory: stage.box.path(), session: undefined, untrusted: false, attachments }
  const args = codexArguments(request, { sandbox: 'read-only', gitPaths: undefined, config: [] })
  expect(args.filter((arg) => arg.startsWith('--image'))).toEqual([`--image=${stage.box.path('a.png')}`])
})
