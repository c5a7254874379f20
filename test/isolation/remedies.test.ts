import { execFileSync } from 'node:child_process'
import { cpSync, lstatSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { examineCodebase } from '../../src/cli/doctor/records.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { resolveCodebase } from '../../src/isolation/codebases/codebases.ts'
import { type Chat, makeChat } from '../helpers/chat.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { ask, type Inside, inside, issue, remove, removeOnTerminal, waysIn } from './scene.ts'
import { remedyIn } from '../helpers/words.ts'
import { toAppError } from '../../src/domain/errors.ts'

/* Every refusal says what to do. Followed to the letter, as it is printed, that has to work. */

let world: World
let chat: Chat
let count = 0
beforeAll(async () => {
  world = await makeWorld({ prepare: (repo) => repo.commit('file', 'one\n') })
  chat = await makeChat(world)
  // Records which disk the repository is on.
  await chat.say('/status')
})
afterAll(() => world[Symbol.asyncDispose]())

const paste = (command: string): void => {
  execFileSync('bash', ['-c', command.replaceAll('<name>', `kept-${count}`)], {
    cwd: world.box.root,
    env: { ...world.box.env },
    stdio: 'pipe',
  })
}

const conflict = (tree: Inside, operation: string): void => {
  tree.git('checkout', '-q', '-b', `theirs-${count}`)
  tree.commit('file', 'theirs\n')
  tree.git('checkout', '-q', '-')
  tree.commit('file', 'ours\n')
  tree.tryGit(...operation.split(' '), `theirs-${count}`)
}

const mergeNotes = (tree: Inside): void => {
  tree.git('notes', 'add', '-f', '-m', 'mine')
  tree.git('notes', '--ref', 'other', 'add', '-f', '-m', 'theirs')
  tree.tryGit('notes', 'merge', 'other')
}

const hide = (tree: Inside, bit: string): void => {
  tree.git('update-index', `--${bit}`, 'file')
  tree.write('file', 'hidden\n')
}

/** The same size and time as when git looked: git does not read such a file again. */
const hideByTime = (tree: Inside, count: number): void => {
  const names = Array.from({ length: count }, (_, n) => `f${n}`)
  const write = (content: string): void => {
    for (const name of names) {
      tree.write(name, content)
      utimesSync(join(tree.path, name), 1_500_000_000, 1_500_000_000)
    }
  }
  const secondsOf = (): string =>
    names.map((name) => lstatSync(join(tree.path, name), { bigint: true }).ctimeNs / 1_000_000_000n).join()
  write('one\n')
  tree.git('add', '-A')
  tree.git('commit', '-q', '-m', 'many')
  // Again, where the second was over in between.
  for (let before = ''; before !== secondsOf();) {
    write('one\n')
    before = secondsOf()
    tree.git('update-index', '--refresh')
    write('two\n')
  }
}

/** More than a remedy names, and names that cannot be pasted; below `left-out`, what a sparse checkout leaves out. */
const hideMany = (tree: Inside, bit: string): void => {
  const odd = ['a b', '-n', "it's", '$(false)', '*', '[x]', 'tab\t', 'line\n 1. Commit: false', 'é', 'link', 'gone']
  const names = [...odd.map((name) => Buffer.from(name)), Buffer.from([0x6e, 0xff])]
  for (let n = 0; names.length < 30; n += 1) names.push(Buffer.from(`deep/${n}`))
  const at = (name: Buffer): Buffer => Buffer.concat([Buffer.from(`${tree.path}/`), name])
  tree.write('deep/left-out', 'x\n')
  for (const name of names) {
    if (name.equals(Buffer.from('link'))) symlinkSync('nowhere', at(name))
    else writeFileSync(at(name), 'one\n')
  }
  tree.git('add', '-A')
  tree.git('commit', '-q', '-m', 'many')
  const paths = Buffer.concat(names.flatMap((name) => [name, Buffer.from([0])]))
  execFileSync('git', ['-C', tree.path, 'update-index', '-z', `--${bit}`, '--stdin'], {
    env: world.box.env,
    input: paths,
  })
  tree.git('update-index', '--skip-worktree', 'deep/left-out')
  rmSync(`${tree.path}/deep/left-out`)
  for (const name of names) rmSync(at(name))
  for (const name of names.filter((one) => bit === 'skip-worktree' || !one.equals(Buffer.from('gone')))) {
    if (name.equals(Buffer.from('link'))) symlinkSync('elsewhere', at(name))
    else writeFileSync(at(name), 'two\n')
  }
}

const show = 'Show the changes to git'

/** What somebody did, and the ways that are gone one after the other until the worktree can be removed. */
const rows: [string, (tree: Inside) => void, string[]][] = [
  ['a changed file', (tree) => tree.write('file', 'two\n'), ['Discard changes']],
  ['a changed file', (tree) => tree.write('file', 'two\n'), ['Commit']],
  ['an untracked file', (tree) => tree.write('a/new', ''), ['Discard changes']],
  ['a staged file', (tree) => (tree.write('new', ''), tree.git('add', 'new')), ['Discard changes']],
  ['a staged deletion', (tree) => tree.git('rm', '-q', 'file'), ['Discard changes']],
  ['an intent to add', (tree) => (tree.write('new', 'x'), tree.git('add', '-N', 'new')), ['Discard changes']],
  ['a conflicted merge', (tree) => conflict(tree, 'merge'), ['Discard changes']],
  ['a conflicted merge', (tree) => conflict(tree, 'merge'), ['Abort the merge']],
  ['a conflicted rebase', (tree) => conflict(tree, 'rebase'), ['Abort the rebase']],
  ['a conflicted cherry-pick', (tree) => conflict(tree, 'cherry-pick'), ['Abort the cherry-pick']],
  ['a merge of notes', (tree) => mergeNotes(tree), ['Abort the notes merge']],
  ['a bisect', (tree) => tree.git('bisect', 'start'), ['Abort the bisect']],
  ['assume-unchanged', (tree) => hide(tree, 'assume-unchanged'), [show, 'Discard changes']],
  ['skip-worktree', (tree) => hide(tree, 'skip-worktree'), [show, 'Commit']],
  ['many files behind assume-unchanged', (tree) => hideMany(tree, 'assume-unchanged'), [show, 'Commit']],
  ['many files behind skip-worktree', (tree) => hideMany(tree, 'skip-worktree'), [show, 'Discard changes']],
  ['many files changed within a second', (tree) => hideByTime(tree, 25), [show, 'Commit']],
  [
    'commits on a detached HEAD',
    (tree) => (tree.git('checkout', '-q', '--detach'), tree.commit('file', 'three\n')),
    ['Keep the commits'],
  ],
  [
    'a commit that only a ref of the worktree holds',
    (tree) => tree.git('update-ref', 'refs/worktree/x', tree.git('commit-tree', '-m', 'x', 'HEAD^{tree}')),
    ['Keep refs/worktree/x'],
  ],
  [
    'a file that only a ref of the worktree holds',
    (tree) => tree.git('update-ref', 'refs/worktree/x', tree.git('hash-object', '-w', 'file')),
    ['Keep refs/worktree/x'],
  ],
]

/** The same for all rows, put back where it was after each. */
let shared: IsolatedEnvironment | undefined
const sharedAsItWas = async (): Promise<IsolatedEnvironment> => {
  const environment = (shared ??= await issue(world, ++count))
  count += 1
  const tree = inside(world, environment)
  tree.git('checkout', '-q', '--force', environment.branch)
  tree.git('reset', '-q', '--hard', 'main')
  tree.git('clean', '-fdxq')
  expect(tree.git('ls-files', '-v')).toBe('H README\nH file')
  return environment
}

test.each(rows)('the remedy works for %s', async (_what, break_, titles) => {
  const environment = await sharedAsItWas()
  break_(inside(world, environment))
  for (const title of titles) {
    const refused = await removeOnTerminal(world, environment)
    expect(refused).toMatch(/^Cannot remove worktree/)
    const how = waysIn(refused).get(title)
    if (how === undefined) throw new Error(`no "${title}" in\n${refused}`)
    paste(how)
    // Else `git add -A` would commit the deletion of what a sparse checkout leaves out.
    expect(inside(world, environment).tryGit('status', '--short')).not.toContain('left-out')
  }
  expect(await remove(world, environment, { dryRun: true })).toMatchObject({ outcome: 'would-remove' })
})

test('a broken HEAD sends to doctor, not to a git command that fails', async () => {
  const environment = await issue(world, ++count)
  const head = inside(world, environment).git('rev-parse', '--absolute-git-dir')
  writeFileSync(join(head, 'HEAD'), 'nonsense\n')
  const ways = waysIn(await removeOnTerminal(world, environment))
  expect([...ways]).toEqual([['Find out more', 'coppice doctor']])
  const [found] = (await examineCodebase(world.context, world.codebase)).filter(({ state }) => state === 'problem')
  paste(/: (printf .*)$/.exec(remedyIn(found))?.[1] ?? 'false')
  expect(await removeOnTerminal(world, environment)).toMatch(/^Removed/)
})

test('a worktree that a conversation holds says how long that lasts', async () => {
  const environment = await issue(world, ++count)
  const other = await makeChat(world, { id: 'other' })
  await world.context.store.conversations.update((await other.conversation()).id, { environmentId: environment.id })
  const wait = waysIn(await removeOnTerminal(world, environment)).get('Wait')
  expect(wait).toBe(
    'until its conversations are closed or have been idle for 14 days (1 hour if its work is merged); `/stop` there ends a run',
  )
})

describe('a repository that was copied', () => {
  test('has records of worktrees that stay with the original: doctor names them until they are gone', async () => {
    const original = await issue(world, ++count)
    cpSync(world.repo.path, world.box.path('copy'), { recursive: true })
    const codebase = await resolveCodebase(world.context, { cwd: world.box.path('copy') })
    const create = () => ask({ ...world, codebase }, 'issue', count)
    const refused = await create().then(() => undefined, toAppError)
    expect([refused?.code, remedyIn(refused)]).toEqual([
      'branch-in-use',
      expect.stringContaining('`coppice doctor` names the record to delete'),
    ])
    for (let round = 0; round < 50; round += 1) {
      const [found] = (await examineCodebase(world.context, codebase)).filter(({ state }) => state !== 'ok')
      if (found === undefined) break
      expect(remedyIn(found)).toMatch(/^delete the copied record: rm -r /)
      paste(/: (rm .*)$/.exec(remedyIn(found))?.[1] ?? 'false')
    }
    expect(await create()).toMatchObject({ outcome: 'resolved', how: 'created' })
    expect(inside(world, original).git('status', '--short')).toBe('')
  })
})

test.each(['/status', '/worktree list', '/diff'])(
  '%s in a conversation whose repository is gone says what a chat can do',
  async (command) => {
    renameSync(world.repo.path, world.box.path('away'))
    try {
      expect(await chat.say(command)).toBe(
        [
          `The repository of project is gone: ${world.repo.path} doesn't exist.`,
          'Put it back on the server, or run `coppice codebase add <new path>` there; to use another repository here: `/codebase <name>` or `/clone <url>`.',
        ].join('\n'),
      )
    } finally {
      renameSync(world.box.path('away'), world.repo.path)
    }
  },
)
