import { execFileSync } from 'node:child_process'
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { Git } from '../../src/git/door.ts'
import { unreachableCommits } from '../../src/isolation/providers/checkout/look/unreachable.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { type Inside, inside, issue, remove, removeOnTerminal, waysIn } from './scene.ts'

/*
 * A submodule's git directory goes with the worktree. Whatever holds commits that its remote does not have: the printed
 * commands, pasted, put them there, and then the worktree can be removed without force.
 */

let world: World
let count = 0
beforeAll(async () => {
  world = await makeWorld({
    prepare: (repo, box) => {
      box.repo('lib').commit('lib.c', 'int x;\n')
      repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
      repo.git('commit', '-q', '-a', '-m', 'lib')
    },
  })
  // In place of ssh: the command for the other side runs on this one.
  writeFileSync(world.box.path('ssh'), '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
  chmodSync(world.box.path('ssh'), 0o755)
})
afterAll(() => world[Symbol.asyncDispose]())

const paste = (how: string): void => {
  const filled = how
    .replace(/^first copy out the ignored files .*, then: /, '')
    .replaceAll('<name>', `kept-${count}`)
    .replaceAll('<url>', world.box.path('lib'))
    .replaceAll('<path>', world.box.path(`moved-${count}`))
  // Not in the worktree: the commands have to say where they work.
  execFileSync('bash', ['-c', filled], {
    cwd: world.box.root,
    env: { ...world.box.env, GIT_SSH_COMMAND: world.box.path('ssh') },
    stdio: 'pipe',
  })
  count += 1
}

/** As `git submodule update` leaves it. */
const back = (lib: Inside): void => void lib.git('checkout', '-q', lib.git('rev-parse', 'refs/remotes/origin/HEAD'))

const work = (lib: Inside, text: string): string => lib.commit('lib.c', `int ${text}${count};\n`)

/** On no branch, only in the reflog. */
const dropped = (lib: Inside, text: string): void => {
  work(lib, text)
  back(lib)
}

const onlyTag = (lib: Inside, ...tag: string[]): void => {
  work(lib, 'tagged')
  lib.git('tag', ...tag)
  back(lib)
}

const stash = (lib: Inside, text: string): void => {
  lib.write('lib.c', `int ${text};\n`)
  lib.git('stash', '--quiet')
}

/** A remote that answers only those with a key. */
const askForKey = (lib: Inside): void =>
  void lib.git('remote', 'set-url', 'origin', `ssh://git@localhost${world.box.path('lib')}`)

/** As `git submodule update --depth 1` makes it: what is pushed gets no tracking ref. */
const cloneShallow = (lib: Inside): void => {
  const tree = inside(world, { path: dirname(lib.path) })
  rmSync(lib.git('rev-parse', '--absolute-git-dir'), { recursive: true })
  rmSync(lib.path, { recursive: true })
  tree.git('-c', `submodule.lib.url=file://${world.box.path('lib')}`, 'submodule', '--quiet', 'update', '--depth', '1')
  expect(lib.git('rev-parse', '--is-shallow-repository')).toBe('true')
  expect(lib.git('config', 'remote.origin.fetch')).toBe('+refs/heads/main:refs/remotes/origin/main')
}

const push = "Push the submodule's commits"
const unlink = "Remove the submodule's worktree"

type Row = {
  readonly what: string
  readonly made: (lib: Inside) => void
  /** Part of the refusal. */
  readonly says: string
  /** Part of the first command. */
  readonly command?: string
  /** What is followed, one after the other. */
  readonly titles: readonly string[]
  /** The submodule is not as it was afterwards: it gets a worktree of its own, which is removed in the end. */
  readonly isAlone?: true
}

const rows: Row[] = [
  {
    what: 'HEAD',
    made: (lib) => work(lib, 'head'),
    says: '1 commit in submodule lib that no remote has',
    command: 'push origin HEAD:refs/heads/',
    titles: [push, 'Commit'],
  },
  {
    what: 'HEAD, and then it is moved back',
    made: (lib) => work(lib, 'discarded'),
    says: 'submodule lib is at another commit',
    titles: ['Discard changes', push],
  },
  {
    what: 'changed files',
    made: (lib) => {
      lib.write('lib.c', `int changed${count};\n`)
      lib.write('new.c', 'int untracked;\n')
    },
    says: 'submodule lib has changes',
    titles: ['Commit in the submodule', 'Commit', push],
  },
  {
    what: 'changed files that nobody needs',
    made: (lib) => {
      lib.write('lib.c', 'int changed;\n')
      lib.write('new.c', 'int untracked;\n')
    },
    says: 'submodule lib has changes',
    titles: ["Discard the submodule's changes"],
  },
  {
    what: 'files without .git, and the reflog',
    isAlone: true,
    made: (lib) => {
      dropped(lib, 'dropped')
      rmSync(join(lib.path, '.git'))
    },
    says: 'submodule lib has files but no .git',
    titles: ["Move the submodule's files out", push, 'Discard changes'],
  },
  {
    what: 'another branch',
    made: (lib) => {
      lib.git('switch', '-q', '-c', 'odd$(x)')
      dropped(lib, 'branch')
    },
    says: '1 commit in submodule lib that no remote has',
    command: `push origin 'refs/heads/odd$(x)':refs/heads/`,
    titles: [push],
  },
  {
    what: 'two stashes, one of them in the reflog alone',
    made: (lib) => {
      stash(lib, 'one')
      stash(lib, 'two')
    },
    says: 'commits that only the stash of submodule lib has',
    command: ' branch <name>-1 ',
    titles: [push],
  },
  {
    what: 'the reflog',
    made: (lib) => dropped(lib, 'dropped'),
    says: '1 commit that only the reflog of submodule lib has',
    command: ' branch <name> ',
    titles: [push],
  },
  {
    what: 'more entries of the reflog than fit on a line',
    made: (lib) => {
      for (let n = 0; n < 12; n += 1) dropped(lib, `draft${n}`)
    },
    says: '12 commits in submodule lib that no remote has',
    titles: [`${push} (the first 10 branches)`, push],
  },
  {
    what: 'HEAD, a branch behind it, another branch, a tag, a note, a stash and the reflog',
    made: (lib) => {
      dropped(lib, 'dropped')
      lib.git('notes', 'add', '-m', 'mine')
      onlyTag(lib, '-a', '-m', 'v', `mixed-${count}`)
      lib.git('switch', '-q', '-c', 'other')
      dropped(lib, 'other')
      lib.git('switch', '-q', '-c', 'behind')
      work(lib, 'behind')
      stash(lib, 'stashed')
      lib.git('switch', '-q', '--detach')
      work(lib, 'head')
    },
    says: '8 commits in submodule lib that no remote has',
    titles: [push, 'Commit'],
  },
  {
    what: 'a tag, with a remote that says which tags it has',
    made: (lib) => onlyTag(lib, `mine-${count}`),
    says: '1 commit that only tags in submodule lib have.',
    command: 'push origin refs/tags/mine-',
    titles: [push],
  },
  {
    what: 'a tag whose name the remote has for something else',
    made: (lib) => {
      world.box.raw(world.box.path('lib'), 'tag', 'taken')
      onlyTag(lib, 'taken')
    },
    says: '1 commit that only tags in submodule lib have.',
    command: `push origin 'refs/tags/taken^{commit}':refs/heads/`,
    titles: [push],
  },
  {
    what: 'an annotated tag, with a remote that wants a key',
    isAlone: true,
    made: (lib) => {
      onlyTag(lib, '-a', '-m', 'v', `secret-${count}`)
      askForKey(lib)
    },
    says: '1 commit that only tags in submodule lib have (its remote did not answer without credentials)',
    command: `^{commit}':refs/heads/`,
    titles: [push],
  },
  {
    what: 'a tag on a file',
    made: (lib) => lib.git('tag', 'file', 'HEAD:lib.c'),
    says: 'refs/tags/file in submodule lib was not pushed',
    titles: ['Push refs/tags/file and delete it here'],
  },
  {
    what: 'tags on files, with a remote that wants a key',
    isAlone: true,
    made: (lib) => {
      for (const name of ['a', 'b', 'c', 'd']) lib.git('tag', '-a', '-m', name, name, 'HEAD:lib.c')
      askForKey(lib)
    },
    says: '4 refs in submodule lib were not pushed: refs/tags/a, refs/tags/b, refs/tags/c, …',
    titles: ['Push the refs and delete them here'],
  },
  {
    what: 'worktrees: one with a commit, one that is locked and gone, one that git has half a record of',
    isAlone: true,
    made: (lib) => {
      const add = (name: string, ...more: string[]): Inside => {
        const path = world.box.path(name)
        lib.git('worktree', 'add', '-q', '--detach', ...more, path)
        return inside(world, { path })
      }
      work(add('of lib'), 'elsewhere')
      rmSync(add('locked', '--lock').path, { recursive: true })
      add('half')
      rmSync(join(lib.git('rev-parse', '--absolute-git-dir'), 'worktrees/half/gitdir'))
    },
    says: 'submodule lib has worktrees of its own',
    titles: [push, unlink, unlink, unlink],
  },
  {
    what: 'a stash, a branch, a tag and HEAD of a shallow clone of one branch, with a remote that wants a key',
    isAlone: true,
    made: (lib) => {
      cloneShallow(lib)
      // As Coppice clones it, the tags of the remote are known.
      for (const tag of lib.git('tag').split('\n')) if (tag !== '') lib.git('tag', '-d', tag)
      // A fetch would bring this one along.
      world.box.raw(world.box.path('lib'), 'tag', 'their-file', 'HEAD:lib.c')
      stash(lib, 'stashed')
      onlyTag(lib, 'shallow-tag')
      lib.git('switch', '-q', '-c', 'shallow-branch')
      dropped(lib, 'branch')
      work(lib, 'head')
      askForKey(lib)
    },
    says: '5 commits in submodule lib that no remote has',
    titles: [push, 'Commit'],
  },
  {
    what: 'a submodule whose files are gone',
    isAlone: true,
    made: (lib) => {
      dropped(lib, 'dropped')
      rmSync(lib.path, { recursive: true })
    },
    says: '1 commit that only the reflog of submodule lib has',
    titles: [push, 'Discard changes'],
  },
  {
    what: 'a submodule with a remote of another name, and one whose name is an option',
    isAlone: true,
    made: (lib) => {
      lib.git('remote', 'remove', 'origin')
      lib.git('config', 'remote.--receive-pack=false.url', world.box.path('lib'))
      lib.git('remote', 'add', 'upstream', world.box.path('lib'))
      lib.git('fetch', '-q', '--no-tags', 'upstream')
      lib.git('switch', '-q', '-c', 'upstream-branch')
      work(lib, 'branch')
      lib.git('checkout', '-q', 'upstream/main')
    },
    says: '1 commit in submodule lib that no remote has',
    command: 'push upstream ',
    titles: [push],
  },
  {
    what: 'a submodule that lost its remote',
    isAlone: true,
    made: (lib) => {
      lib.git('switch', '-q', '-c', 'without-remote')
      dropped(lib, 'branch')
      lib.git('remote', 'remove', 'origin')
    },
    says: '1 commit in submodule lib that no remote has',
    command: 'remote add origin <url>',
    titles: [push],
  },
]

/** For the rows that leave the submodule as it was, once their commits are pushed. */
let shared: IsolatedEnvironment | undefined
const sharedAsItWas = async (): Promise<IsolatedEnvironment> => {
  const environment = (shared ??= await issue(world, ++count))
  const tree = inside(world, environment)
  const lib = inside(world, { path: join(environment.path, 'lib') })
  tree.git('reset', '-q', '--hard', 'main')
  lib.git('remote', 'set-url', 'origin', world.box.path('lib'))
  lib.git('checkout', '-q', '--force', '--detach', tree.git('rev-parse', 'HEAD:lib'))
  const tags = lib
    .git('tag')
    .split('\n')
    .filter((tag) => tag !== '')
  if (tags.length > 0) lib.git('tag', '-d', ...tags)
  expect([tree.git('status', '--short'), lib.git('status', '--short')]).toEqual(['', ''])
  return environment
}

const named = rows.map((row): [string, Row] => [row.what, row])
test.each(named)('a submodule is pushed by the printed commands, and the worktree goes: %s', async (_what, row) => {
  const { made, says, command = '', titles, isAlone } = row
  const environment = isAlone ? await issue(world, ++count) : await sharedAsItWas()
  const lib = inside(world, { path: join(environment.path, 'lib') })
  const gitDir = lib.git('rev-parse', '--absolute-git-dir')
  const bare = (...args: string[]): string => world.box.raw(gitDir, '--work-tree=.', '--git-dir=.', ...args)
  made(lib)
  const unpushed = bare('rev-list', '--all', '--reflog', 'HEAD', '--not', '--remotes', '--').split('\n')
  const objects = bare('for-each-ref', '--format=%(objectname)', 'refs/tags').split('\n')
  let refused = await removeOnTerminal(world, environment)
  expect(refused).toContain(says)
  expect(waysIn(refused).get(titles[0] ?? '')).toContain(command)
  for (const [i, title] of titles.entries()) {
    const how = waysIn(refused).get(title)
    if (how === undefined) throw new Error(`no "${title}" in\n${refused}`)
    paste(how)
    if (isAlone || i < titles.length - 1) refused = await removeOnTerminal(world, environment)
  }
  const answer = isAlone ? refused : (await remove(world, environment, { dryRun: true })).outcome
  expect(answer).toMatch(isAlone ? /^Removed/ : /^would-remove$/)
  const remote = inside(world, { path: world.box.path('lib') })
  const onRemote = remote.git('rev-list', '--objects', '--all')
  for (const sha of unpushed.filter((one) => one !== '')) expect(onRemote).toContain(sha)
  const files = objects.filter((sha) => sha !== '' && says.includes('not pushed'))
  for (const sha of files) expect(remote.git('show-ref')).toContain(sha)
})

test('a tag on a file that somebody fetched is no reason to keep a submodule, nor is anything that was pushed', async () => {
  const environment = await sharedAsItWas()
  const remote = inside(world, { path: world.box.path('lib') })
  remote.git('tag', `fetched-file-${count}`, remote.git('hash-object', '-w', 'lib.c'))
  inside(world, { path: join(environment.path, 'lib') }).git('fetch', '-q', '--tags')
  expect(await removeOnTerminal(world, environment)).toMatch(/^Removed/)
})

test('the remotes of all submodules are asked for their tags at the same time', async () => {
  const names = ['a', 'b', 'c']
  await using own = await makeWorld({
    prepare: (repo, box) => {
      for (const name of names) repo.git('submodule', '--quiet', 'add', box.repo(`lib-${name}`).path, name)
      repo.git('commit', '-q', '-m', 'libs')
    },
  })
  const environment = await issue(own, 1)
  for (const name of names) onlyTag(inside(own, { path: join(environment.path, name) }), 'mine')
  const tree = {
    commonDir: own.repo.commonDir,
    gitDir: own.box.raw(environment.path, 'rev-parse', '--absolute-git-dir'),
  }
  // None is answered before all of them were asked: one after the other, the first would wait for ever.
  const all = Promise.withResolvers<undefined>()
  let asked = 0
  const git: Git = {
    ...own.context.git,
    run: async (request) => {
      if (request.operation === 'ls-remote' && ++asked === names.length) all.resolve(undefined)
      if (request.operation === 'ls-remote') await all.promise
      return own.context.git.run(request)
    },
  }
  const found = await unreachableCommits({ git }, { ...tree, path: environment.path })
  expect(found).toMatchObject(names.map((name) => ({ submodule: { name }, askedForTags: 'answered' })))
})
