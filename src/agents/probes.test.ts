import { randomUUID } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { defaultSettings } from '../domain/config/settings.ts'
import { createGit } from '../git/door.ts'
import { selfIdentity } from '../process/identity.ts'
import type { Agent } from './agent.ts'
import { agentNames, createAgents } from './registry.ts'

let dir = ''
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'coppice-probes-')))
  Object.assign(process.env, canaries)
})
afterEach(() => {
  for (const name of Object.keys(canaries)) delete process.env[name]
  rmSync(dir, { recursive: true, force: true })
})

const canaries = {
  GITHUB_TOKEN: 'canary-token',
  COPPICE_DATABASE_URL: 'canary-database',
  SOME_SERVICE_SECRET: 'canary-secret',
  // Its name says nothing; it must stay out all the same.
  UNHEARD_OF: 'canary-of-nobody',
  GIT_DIR: 'canary-git-dir',
}

/** A program that writes down its whole environment for every time it is asked something. */
const dumping = (): string => {
  const program = join(dir, 'program')
  writeFileSync(program, `#!/bin/sh\n{ echo "asked: $*"; env; } >> '${join(dir, 'dump')}'\necho 1.2.3\n`)
  chmodSync(program, 0o755)
  return program
}

const agentsOf = (program: string): ReadonlyMap<string, Agent> =>
  createAgents({
    settings: {
      ...defaultSettings,
      agentCommand: program,
      claudeCommand: program,
      codexCommand: program,
      acpAgents: [{ name: 'acp', command: [program, 'talk'], variables: {}, forks: false }],
    },
    git: createGit({ env: {}, home: dir, now: Date.now }),
    clock: Date.now,
    ids: randomUUID,
    self: selfIdentity(),
    contextDirectory: join(dir, 'contexts'),
    ownEnvironment: { ...process.env, ...canaries },
  })

/** They start nothing before there is a message. */
const startNothing = ['command', 'demo']
const asked = [...agentNames.filter((name) => !startNothing.includes(name)), 'acp']

test.each(startNothing)('whoever asks whether %s is there starts no program', async (name) => {
  const agent = agentsOf(dumping()).get(name)
  expect(await agent?.availability()).toMatchObject({ state: 'ready' })
  await agent?.inspect?.()
  expect(existsSync(join(dir, 'dump'))).toBe(false)
})

test.each(asked)(
  'whoever asks whether %s is there gives it the allow-listed environment and nothing else',
  async (name) => {
    const agent = agentsOf(dumping()).get(name)
    await agent?.availability()
    await agent?.inspect?.()
    expect(existsSync(join(dir, 'dump')), 'it was asked').toBe(true)
    const dump = readFileSync(join(dir, 'dump'), 'utf8')
    expect(dump).toContain('PATH=')
    expect(dump).not.toMatch(/canary/)
  },
)
