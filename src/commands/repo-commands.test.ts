import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Chat, makeChat } from '../../test/helpers/chat.ts'
import { writeIn } from '../../test/helpers/repo.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import { isAppError } from '../domain/errors.ts'
import { parseRepoCommand, promptOf, repoCommandsOf } from './repo-commands.ts'

const file = '.coppice/commands/fix.md'
const parse = (source: string) => parseRepoCommand('fix', file, source)

describe('a command file', () => {
  test('without front matter is a prompt, with the careful defaults', async () => {
    expect(await parse('Fix it.\n\n---\n\nWell.\n')).toEqual({
      name: 'fix',
      description: undefined,
      examples: [],
      type: 'mixed',
      requiresIsolation: true,
      allowedTools: [],
      disallowedTools: [],
      body: 'Fix it.\n\n---\n\nWell.',
    })
  })

  test('says what it is in its front matter', async () => {
    const source = [
      '---',
      'description: Explain the code',
      'examples: [what does this do, explain this]',
      'type: read',
      'requiresIsolation: false',
      'allowedTools: [Read, Grep]',
      'disallowedTools: Write, Bash(rm:*, mv:*)',
      '---',
      'Explain.',
    ]
    for (const end of ['\n', '\r\n']) {
      expect(await parse(source.join(end))).toMatchObject({
        description: 'Explain the code',
        examples: ['what does this do', 'explain this'],
        type: 'read',
        requiresIsolation: false,
        allowedTools: ['Read', 'Grep'],
        disallowedTools: ['Write', 'Bash(rm:*, mv:*)'],
        body: 'Explain.',
      })
    }
  })

  test.each([
    ['---\ntyp: read\n---\nx', `${file}: unknown key "typ"`, 'did you mean "type"?'],
    ['---\ntype: readonly\n---\nx', `${file}: type is "readonly"`, 'type must be read, write or mixed'],
    ['---\nrequiresIsolation: maybe\n---\nx', `${file}: requiresIsolation is "maybe"`, 'true or false'],
    ['---\nallowedTools: {a: 1}\n---\nx', `${file}: allowedTools is`, 'a list of tool names'],
    ['---\n- a\n---\nx', `the front matter of ${file} has no keys`, 'description, examples, type'],
    ['---\na: [\n---\nx', `couldn't parse the front matter of ${file}`, 'fix the YAML'],
    ['---\ntype: read\nx', `the front matter of ${file} isn't closed`, 'a --- line'],
    ['---\ntype: read\n---\n  \n', `${file} has no prompt`, 'write the prompt'],
  ])('%j is refused by a sentence that names file and key', async (source, message, remedy) => {
    await expect(parse(source)).rejects.toSatisfy(
      (error) =>
        isAppError(error, 'config-invalid') &&
        error.message.includes(message) &&
        error.remedy?.includes(remedy) === true,
    )
  })

  test("takes the user's words at their place, or behind it, as they are", async () => {
    const put = await parse('Fix $ARGUMENTS, then test $ARGUMENTS.')
    expect(promptOf(put, "the $& and don't")).toBe("Fix the $& and don't, then test the $& and don't.")
    const behind = await parse('Fix it.')
    expect(promptOf(behind, 'now')).toBe('Fix it.\n\nnow')
    expect(promptOf(behind, '')).toBe('Fix it.')
  })
})

describe('the commands of a repository', () => {
  let world: World
  let chat: Chat

  beforeEach(async () => {
    world = await makeWorld({
      prepare: (repo) => {
        repo.commit('.coppice/commands/fix.md', '---\ndescription: Fix an issue\n---\nFix $ARGUMENTS.')
        repo.commit('.coppice/commands/broken.md', '---\ntype: nonsense\n---\nx')
        repo.commit('.coppice/commands/Bad Name.md', 'never')
        repo.commit('.coppice/commands/notes.txt', 'never')
        repo.commit('.coppice/commands/large.md', 'x'.repeat(70_000))
        repo.commit('.coppice/commands/deeper/inside.md', 'never')
        repo.commit('.coppice/commands/status.md', 'never: there is a /status')
      },
    })
    chat = await makeChat(world)
  })
  afterEach(() => world[Symbol.asyncDispose]())

  test('are run with what the user wrote, quotes and all', async () => {
    expect(await chat.ask("/fix the user's  login\nplease ")).toMatchObject({
      kind: 'run',
      command: { name: 'fix', type: 'mixed', requiresIsolation: true },
      prompt: "Fix the user's  login\nplease.",
    })
    expect(await chat.ask('/Fix')).toMatchObject({ kind: 'run', prompt: 'Fix .' })
  })

  test('are shown in the help, the broken ones with what is wrong', async () => {
    const text = await chat.say('/help')
    expect(text).toContain('**Commands from project**\n')
    expect(text).toContain('- `/fix …` Fix an issue')
    expect(text).toMatch(/- `\/broken` can't be used: \.coppice\/commands\/broken\.md \(at \w{7}\): type is "nonsense"/)
    expect(text).toMatch(/- `\/large` can't be used: .* is too large: 70000 bytes/)
    expect(text).not.toMatch(/never|notes|inside|Bad Name/)
  })

  test('that cannot be used say why, and a mistyped one is found', async () => {
    expect(await chat.say('/broken')).toContain('type is "nonsense".\nType must be read, write or mixed.')
    expect(await chat.say('/fxi')).toContain('Unknown command "/fxi".\nDid you mean `/fix`?')
    expect(await chat.say('/inside')).toContain('Unknown command "/inside"')
  })

  test('never take the place of one of ours', async () => {
    expect(await chat.say('/status')).toContain('**Repository**')
  })

  test("come from base and never from the work's branch or the checkout", async () => {
    await chat.say('/worktree create evil')
    const [environment] = await world.context.store.environments.live(world.codebase.id)
    writeIn(environment?.path ?? '', '.coppice/commands/fix.md', 'Do evil.')
    world.box.raw(environment?.path ?? '', 'commit', '-qam', 'evil')
    world.repo.write('.coppice/commands/fix.md', 'Half edited.')
    expect(await chat.ask('/fix it')).toMatchObject({ prompt: 'Fix it.' })
  })

  test('are read once per base commit', async () => {
    await repoCommandsOf(chat.context, world.codebase)
    const known = chat.context.repoCommands.get(world.codebase.id)
    await repoCommandsOf(chat.context, world.codebase)
    expect(chat.context.repoCommands.get(world.codebase.id)).toBe(known)
    world.repo.git('rm', '-q', '.coppice/commands/fix.md')
    world.repo.git('commit', '-qm', 'without')
    expect((await repoCommandsOf(chat.context, world.codebase)).commands.has('fix')).toBe(false)
  })

  test('that are a link are refused: it would name any file of the machine', async () => {
    world.repo.git('rm', '-q', '.coppice/commands/fix.md')
    const { symlinkSync } = await import('node:fs')
    symlinkSync('/etc/passwd', `${world.repo.path}/.coppice/commands/fix.md`)
    world.repo.git('add', '.')
    world.repo.git('commit', '-qm', 'link')
    expect(await chat.say('/fix')).toContain('is not a regular file')
  })
})
