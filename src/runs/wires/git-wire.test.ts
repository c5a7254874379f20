import { appendFileSync, chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeWorld, type World } from '../../../test/helpers/world.ts'
import { writeIn } from '../../../test/helpers/repo.ts'
import { issue } from '../../../test/isolation/scene.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { changesSince, type GitLooks, keepLooks, lookAtGit } from './git-looks.ts'
import { createSecrets } from '../../process/redaction/redact.ts'
import { gitChangesBetweenRuns, lookAtRepository } from './git-wire.ts'

let world: World
let environment: IsolatedEnvironment
let tree: string
let before: GitLooks
let clean: string
const SECRET = 'the-secret-of-this-test'
const { redact } = createSecrets([SECRET])
const context = () => ({ isolation: world.context, redact })
const arm = async (): Promise<void> => {
  before = await lookAtGit(context(), world.codebase, environment)
}
const wire = async (): Promise<readonly string[]> =>
  changesSince(context(), before, await lookAtGit(context(), world.codebase, environment))
const git = (...args: string[]): string => world.box.raw(tree, ...args)

beforeEach(async () => {
  world = await makeWorld({ remote: true })
  environment = await issue(world, 1)
  tree = environment.path
  clean = readFileSync(join(world.repo.commonDir, 'config'), 'utf8')
  await arm()
})
afterEach(() => world[Symbol.asyncDispose]())

test('ordinary work is not told: commits, branches, pushes with upstream', async () => {
  writeIn(tree, 'a', 'a')
  git('add', '.')
  git('commit', '-qm', 'a')
  git('push', '-q', '-u', 'origin', 'HEAD')
  git('branch', 'other')
  expect(await wire()).toEqual([])
})

test('what was set, changed and removed in the configuration is told by its key', async () => {
  git('config', 'core.fsmonitor', '/evil')
  git('config', 'filter.My Filter.clean', '/evil')
  git('config', 'http.https://example.org/.extraHeader', 'Authorization: Bearer abc')
  git('config', 'url.https://token@example.org/.insteadOf', 'gh:')
  const told = await wire()
  expect(told).toEqual([
    "the repository's configuration: set `core.fsmonitor = /evil`",
    "the repository's configuration: set `filter.My Filter.clean = /evil`",
    "the repository's configuration: set `http.https://example.org/.extraHeader = …`",
    "the repository's configuration: set `url.https://[hidden]@example.org/.insteadOf = …`",
  ])
  expect(told.join()).not.toContain('abc')
  await arm()
  git('config', 'core.fsmonitor', '/other')
  expect(await wire()).toEqual([
    "the repository's configuration: set `core.fsmonitor = /other`",
    "the repository's configuration: removed `core.fsmonitor = /evil`",
  ])
  git('config', '--add', 'a.b', 'c')
  await arm()
  git('config', '--add', 'a.b', 'c')
  expect(await wire()).toEqual(["the repository's configuration: set `a.b = c`"])
})

test.each([
  [
    'after a header of another section in the same line',
    '[branch "x"][core] fsmonitor = /evil\n',
    'core.fsmonitor = /evil',
  ],
  [
    'below a header that is the end of a value',
    '[core]\n\tx = a\\\n[branch "x"]\n\tfsmonitor = /evil\n',
    'core.fsmonitor = /evil',
  ],
  ['in a section whose name has a bracket', '[filter "a]b"]\n\tclean = /evil\n', 'filter.a]b.clean = /evil'],
  [
    'below a comment that ends with a backslash',
    '[branch "x"]\n\tmerge = b # \\\n[core] hooksPath = /evil\n',
    'core.hooksPath = /evil',
  ],
  ['in a subsection that ends with NUL', '[core "hookspath\0"]\n\tx = /evil\n', 'core.hookspath = /evil'],
  ['by lines that end as on Windows', '[core]\r\n\tfsmonitor = /evil\r\n', 'core.fsmonitor = /evil'],
])('a program that is planted %s is told, also between runs', async (_name, text, told) => {
  appendFileSync(join(world.repo.commonDir, 'config'), text)
  expect((await wire()).join('\n')).toContain(`set \`${told}\``)
  const now = await lookAtRepository(world.codebase, { user: world.context.programEnvironment, redact })
  expect(gitChangesBetweenRuns(before.repository, now).join('\n')).toContain(`set \`${told}\``)
})

test.each(['pushRemote', 'remote'])(
  'a branch whose %s is no remote of before is told, also between runs',
  async (name) => {
    const evil = world.box.path('evil.git')
    git('config', `branch.main.${name}`, evil)
    git('config', `branch.other.${name}`, 'added')
    git('config', `branch.third.${name}`, 'origin')
    git('config', `branch.fourth.${name}`, '.')
    git('config', 'remote.added.url', evil)
    const now = await lookAtRepository(world.codebase, { user: world.context.programEnvironment, redact })
    for (const told of [await wire(), gitChangesBetweenRuns(before.repository, now)]) {
      expect(told).toEqual([
        `the repository's configuration: set \`branch.main.${name} = ${evil}\``,
        `the repository's configuration: set \`branch.other.${name} = added\``,
        "the repository's configuration: set `remote.added.url = …`",
      ])
    }
    await arm()
    git('config', '--unset', `branch.main.${name}`)
    git('config', `branch.other.${name}`, 'origin')
    expect(await wire()).toEqual([])
  },
)

test('what is planted for a submodule is told, its being cloned is not', async () => {
  const library = world.box.repo('library')
  const add = (name: string): string =>
    git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', '--name', name, library.path, name)
  const modules = join(git('rev-parse', '--absolute-git-dir'), 'modules')
  add('lib/one')
  expect((await wire()).filter((line) => line.includes('submodule `'))).toEqual([])
  await arm()
  writeIn(join(modules, 'lib/one/hooks'), 'pre-push', 'x')
  world.box.raw(join(tree, 'lib/one'), 'config', 'core.fsmonitor', '/evil')
  world.box.raw(join(tree, 'lib/one'), 'config', 'branch.main.pushRemote', '/evil.git')
  world.box.raw(join(tree, 'lib/one'), 'config', 'remote.origin.url', '/evil.git')
  add('two')
  writeIn(join(modules, 'two/hooks'), 'pre-push', 'x')
  world.box.raw(join(tree, 'two'), 'config', 'core.fsmonitor', '/evil')
  const told = await wire()
  expect(told.filter((line) => line.includes('submodule `')).toSorted()).toEqual([
    '`config` of submodule `lib/one`: removed `remote.origin.url = …`',
    '`config` of submodule `lib/one`: set `branch.main.pushRemote = /evil.git`',
    '`config` of submodule `lib/one`: set `core.fsmonitor = /evil`',
    '`config` of submodule `lib/one`: set `remote.origin.url = …`',
    '`config` of submodule `two`: set `core.fsmonitor = /evil`',
    'the hook `pre-push` of submodule `lib/one` was added',
    'the hook `pre-push` of submodule `two` was added',
  ])
  world.repo.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', library.path, 'main')
  await arm()
  writeIn(join(world.repo.commonDir, 'modules/main/hooks'), 'post-checkout', 'x')
  expect(await wire()).toEqual(['the hook `post-checkout` of submodule `main` was added'])
})

test("the worktree's own configuration counts too", async () => {
  git('config', 'extensions.worktreeConfig', 'true')
  git('config', '--worktree', 'user.email', 'a@b')
  expect(await wire()).toEqual([
    "the repository's configuration: set `extensions.worktreeConfig = true`",
    "this worktree's configuration: set `user.email = a@b`",
  ])
})

test('hooks that were added, changed, made executable or removed', async () => {
  const hooks = join(world.repo.commonDir, 'hooks')
  mkdirSync(hooks, { recursive: true })
  writeIn(hooks, 'pre-push', 'x')
  writeIn(hooks, 'post-merge', 'x')
  symlinkSync('/bin/true', join(hooks, 'post-commit'))
  expect(await wire()).toHaveLength(3)
  await arm()
  chmodSync(join(hooks, 'pre-push'), 0o755)
  rmSync(join(hooks, 'post-merge'))
  writeIn(hooks, 'new.sample', 'x')
  expect(await wire()).toEqual(['the hook `post-merge` was removed', 'the hook `pre-push` was changed'])
})

/** All that git obeys from outside of the repository: what it is, how it comes about, and what is planted there. */
const outside = (): Record<string, { prepare: () => void; plant: () => void; told: string }> => {
  const file = world.box.path('elsewhere/file')
  const hooks = world.box.path('elsewhere/hooks')
  const config = '[core]\n\tfsmonitor = /evil\n'
  const included = {
    plant: () => writeIn(world.box.path('elsewhere'), 'file', config),
    told: 'set `core.fsmonitor = /evil`',
  }
  const hook = { plant: () => writeIn(hooks, 'pre-push', 'x'), told: 'the hook `pre-push` in' }
  const append = (text: string) => () => appendFileSync(join(world.repo.commonDir, 'config'), text)
  return {
    'an included file': { prepare: () => void git('config', 'include.path', file), ...included },
    'a file that is included by a relative path': {
      prepare: () => void git('config', 'include.path', '../../elsewhere/file'),
      ...included,
    },
    'a file that is included on a condition': {
      prepare: () => void git('config', 'includeIf.onbranch:x.path', file),
      ...included,
    },
    'a file whose path is quoted, continued and commented': {
      prepare: append(`[Include]\n\tPATH = "${world.box.path('else')}\\\nwhere"/file ; why\n`),
      ...included,
    },
    'a file that an included file includes': {
      prepare: () => {
        writeIn(world.box.path('elsewhere'), 'first', `[include]\n\tpath = file\n`)
        git('config', 'include.path', `${world.box.path('elsewhere')}/first`)
      },
      ...included,
    },
    'a file in the home': {
      prepare: () => void git('config', 'include.path', '~/file'),
      plant: () => writeIn(world.box.home, 'file', config),
      told: included.told,
    },
    'a hooks directory': { prepare: () => void git('config', 'core.hooksPath', hooks), ...hook },
    'a hooks directory that an included file names': {
      prepare: () => {
        writeIn(world.box.path('elsewhere'), 'file', `[core]\n\thooksPath = ${hooks}\n`)
        git('config', 'include.path', file)
      },
      ...hook,
    },
    "a hooks directory of the user's": {
      prepare: () => void git('config', '--global', 'core.hooksPath', hooks),
      ...hook,
    },
    'a hooks directory in the shared checkout': {
      prepare: () => void git('config', 'core.hooksPath', '.husky/_'),
      plant: () => writeIn(join(world.repo.path, '.husky/_'), 'pre-push', 'x'),
      told: hook.told,
    },
    'what a hook links to': {
      prepare: () => {
        writeIn(world.box.path('elsewhere'), 'file', 'x')
        mkdirSync(join(world.repo.commonDir, 'hooks'), { recursive: true })
        symlinkSync(file, join(world.repo.commonDir, 'hooks', 'pre-push'))
      },
      plant: () => writeIn(world.box.path('elsewhere'), 'file', 'y'),
      told: 'what the hook `pre-push` links to was changed',
    },
    "an included file of the worktree's own configuration": {
      prepare: () => {
        git('config', 'extensions.worktreeConfig', 'true')
        git('config', '--worktree', 'include.path', file)
      },
      ...included,
    },
  }
}

test('what git obeys from outside of the repository is told, also between runs', async () => {
  for (const name of Object.keys(outside())) {
    const { prepare, plant, told } = outside()[name] ?? { prepare: () => {}, plant: () => {}, told: '' }
    prepare()
    await arm()
    expect([name, await wire()]).toEqual([name, []])
    plant()
    const now = await lookAtGit(context(), world.codebase, environment)
    const between = [
      ...gitChangesBetweenRuns(before.repository, now.repository),
      ...(before.worktree && now.worktree ? gitChangesBetweenRuns(before.worktree, now.worktree) : []),
    ]
    expect([name, (await changesSince(context(), before, now)).join('\n')]).toEqual([
      name,
      expect.stringContaining(told),
    ])
    expect([name, between.join('\n')]).toEqual([name, expect.stringContaining(told)])
    rmSync(world.box.path('elsewhere'), { recursive: true, force: true })
    rmSync(join(world.box.home, 'file'), { force: true })
    rmSync(join(world.repo.commonDir, 'hooks'), { recursive: true, force: true })
    writeFileSync(join(world.repo.commonDir, 'config'), clean)
  }
})

test.each([
  ['a file', '/dev/zero', 'include.path'],
  ['a directory', '.', 'include.path'],
  ['a link that leads to itself', 'loop', 'include.path'],
  ['the home of somebody else', '~nobody/x', 'include.path'],
])('%s that is included and cannot be read holds nothing up and is told', async (_name, path, key) => {
  symlinkSync('loop', join(world.repo.commonDir, 'loop'))
  git('config', key, path)
  expect((await wire()).join('\n')).toMatch(/couldn't be (?:read|checked)/)
})

test('a configuration that becomes a link is reported as such, apart from its settings, and so is one that is none again', async () => {
  const config = join(world.repo.commonDir, 'config')
  writeFileSync(world.box.path('linked'), `${clean}[core]\n\tpager = evil\n`)
  rmSync(config)
  symlinkSync(world.box.path('linked'), config)
  const link = `a link to ${world.box.path('linked')}`
  expect(await wire()).toEqual([
    "the repository's configuration: set `core.pager = evil`",
    `the repository's configuration is now: ${link}`,
  ])
  await arm()
  rmSync(config)
  writeFileSync(config, clean)
  expect(await wire()).toEqual([
    "the repository's configuration: removed `core.pager = evil`",
    `the repository's configuration is no longer: ${link}`,
  ])
})

test('a configuration that cannot be read is reported whenever it changes', async () => {
  const config = join(world.repo.commonDir, 'config')
  for (const text of ['[core\n[core]\n\tfsmonitor = /evil\n', `#${' '.repeat(1_000_000)}\n`]) {
    writeFileSync(config, text)
    expect((await wire()).join('\n')).toMatch(
      /configuration is now: (?:invalid on line 1|couldn't be read: .* too large)/,
    )
    await arm()
    writeFileSync(
      config,
      text.replaceAll(/evil|#/g, (found) => (found === '#' ? ';' : 'good')),
    )
    expect((await wire()).join('\n')).toMatch(/configuration is now: (?:invalid on line 1|couldn't be read)/)
    writeFileSync(config, clean)
    await arm()
  }
})

test('what was planted while there was no complete look is told by the run that makes one possible again', async () => {
  await keepLooks(context(), world.context.store, before)
  const config = join(world.repo.commonDir, 'config')
  appendFileSync(config, '[include]\n\tpath = ~nobody/x\n')
  await arm()
  await keepLooks(context(), world.context.store, before)
  writeFileSync(config, `${clean}[core]\n\tfsmonitor = /evil\n`)
  expect(await wire()).toEqual(["the repository's configuration: set `core.fsmonitor = /evil`"])
})

test('a secret that is cut off in the report is hidden all the same', async () => {
  git('config', 'a.b', `${'x'.repeat(145)}${SECRET}`)
  const told = await wire()
  expect(told).toHaveLength(1)
  expect(told.join()).not.toContain(SECRET.slice(0, 5))
})

test('two submodules whose names look the same in a report do not hide each other', async () => {
  const modules = ['a b', 'a\tb'].map((name) => join(world.repo.commonDir, 'modules', name))
  for (const module of modules) writeIn(module, 'HEAD', 'ref: refs/heads/main\n')
  await arm()
  for (const [n, module] of [...modules, ...modules].entries()) {
    writeIn(module, 'config', `[core]\n\tfsmonitor = /evil-${n}\n`)
    writeIn(join(module, 'hooks'), 'pre-push', `${n}`)
    const told = (await wire()).join('\n')
    expect(told).toContain(`\`config\` of submodule \`a b\`: set \`core.fsmonitor = /evil-${n}\``)
    expect(told).toMatch(/the hook `pre-push` of submodule `a b` was (?:added|changed)/)
    await arm()
  }
})

test('a look by a version that did not follow what git obeys elsewhere is no reason to report it', async () => {
  git('config', 'core.hooksPath', world.box.path('hooks'))
  writeIn(world.box.path('hooks'), 'pre-push', 'x')
  await arm()
  if ('problem' in before.repository) throw new Error(before.repository.problem)
  const { followed: _, ...older } = before.repository
  expect(gitChangesBetweenRuns(older, before.repository)).toEqual([])
})

test('the pointers of the worktree', async () => {
  const admin = git('rev-parse', '--absolute-git-dir')
  writeIn(admin, 'commondir', '/elsewhere\n')
  writeIn(admin, 'gitdir', '/elsewhere/.git\n')
  writeIn(tree, '.git', 'gitdir: /elsewhere\n')
  expect(await wire()).toEqual([
    'the `.git` file of this worktree was changed',
    "`gitdir` in git's record of this worktree was changed",
    "`commondir` in git's record of this worktree was changed",
  ])
})

test('a hook that cannot be read is not taken for unchanged', async () => {
  rmSync(join(world.repo.commonDir, 'hooks'), { recursive: true, force: true })
  symlinkSync('hooks', join(world.repo.commonDir, 'hooks'))
  expect((await wire()).join()).toMatch(/couldn't be checked/)
})
