import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { EnvironmentJson } from '../helpers/cli.ts'
import { markerProgram, type TestRepo, writeIn } from '../helpers/repo.ts'
import { makeServerWorld, type ServerProcess, type ServerWorld } from '../helpers/server-process.ts'

/*
 * An agent plants what git would run into the repository's and its worktree's own files. Whatever Coppice does next, by
 * chat or by command line, runs none of it: each plant has a canary of its own, and plain git shows that it is live.
 */

type Scene = {
  readonly world: ServerWorld
  readonly server: ServerProcess
  readonly repo: TestRepo & { readonly origin: string }
  /** The worktree of the conversation T1. */
  readonly tree: EnvironmentJson
  /** A program that leaves the canary of this name. */
  readonly evil: (name: string, then?: string) => string
  readonly canaries: () => string[]
  readonly forget: () => void
}

/** The agent runs what it is told: the message is a script. */
const withScene = async (work: (scene: Scene) => Promise<void>): Promise<void> => {
  await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: 'sh -s' } })
  const repo = await world.project()
  repo.commit('notes.txt', 'one\n')
  repo.git('push', '-q', 'origin', 'main')
  const nest = world.box.path('canaries')
  mkdirSync(nest)
  const server = await world.serve()
  // Work to look at: a commit, a change, an untracked file, and attributes for every kind of driver.
  const begun = await server.ask(
    'T1',
    `printf 'notes.txt filter=evil diff=evil merge=evil\\n' > .gitattributes; echo two > notes.txt; git add .; git commit -qm work; echo three > notes.txt; echo new > new.txt`,
  )
  expect(begun.map(({ text }) => text).join('\n')).toContain('Working in isolated branch')
  const [tree] = await world.json<EnvironmentJson[]>(repo.path, 'worktree', 'list')
  if (tree === undefined) throw new Error('there is no worktree')
  // So that a merge of both has something to do.
  repo.commit('notes.txt', 'other\n')
  await work({
    world,
    server,
    repo,
    tree,
    evil: (name, then = 'exit 1') => markerProgram(world.box.path(`evil-${name}`), join(nest, name), then),
    canaries: () => readdirSync(nest),
    forget: () => {
      for (const name of readdirSync(nest)) rmSync(join(nest, name))
    },
  })
  await server.stop()
}

/** Says the script to the agent and answers what the thread was told of it. */
const plant = async ({ server, forget }: Scene, script: string): Promise<string> => {
  const said = await server.ask('T1', script)
  // What the agent's own git ran is the agent's affair.
  forget()
  return said
    .filter(({ role }) => role === 'system')
    .map(({ text }) => text)
    .join('\n')
}

/** Everything that comes next, whether it succeeds or is refused. */
const everything = async ({ world, server, repo, tree }: Scene): Promise<void> => {
  for (const command of ['/status', '/diff', '/worktree list', '/worktree orphans', '/worktree cleanup merged']) {
    await server.ask('T1', command)
  }
  await server.ask('T1', 'echo again')
  await server.ask('T2', 'echo a new conversation')
  const commands = [
    ['worktree', 'list'],
    ['status'],
    ['diff', tree.branch],
    ['cleanup', '--dry-run'],
    ['doctor'],
    ['worktree', 'create', 'another'],
    ['worktree', 'remove', tree.branch],
    ['worktree', 'remove', tree.branch, '--force'],
    ['worktree', 'restore', tree.branch],
    ['worktree', 'cleanup', 'stale'],
    ['cleanup'],
    ['worktree', 'list'],
  ]
  for (const command of commands) await world.cli(repo.path, ...command)
  await server.ask('T1', 'echo and again')
}

/** Plain git, whether it succeeds or not: what counts is what it ran. */
const plainly = ({ world: { box } }: Scene, cwd: string, ...args: string[]): void => {
  try {
    box.raw(cwd, ...args)
  } catch {
    // A canary that fails makes git fail.
  }
}

// Some thirty commands of real programs each, on a machine that may have other things to do.
describe('what an agent plants is told, and never run by Coppice', { timeout: 300_000 }, () => {
  test('in the configuration of the repository', async () => {
    await withScene(async (scene) => {
      const { evil, tree, repo, world, canaries } = scene
      writeIn(world.box.root, 'included', `[filter "included"]\n\tclean = ${evil('include', 'cat')}\n`)
      const hooks = world.box.path('hooks')
      mkdirSync(hooks)
      for (const hook of ['post-checkout', 'post-index-change', 'reference-transaction', 'pre-push', 'post-commit']) {
        markerProgram(join(hooks, hook), world.box.path('canaries', 'hooksPath'), 'exit 0')
      }
      const entries: [string, string][] = [
        ['core.fsmonitor', evil('fsmonitor')],
        ['core.hooksPath', hooks],
        ['core.sshCommand', evil('sshCommand')],
        ['core.askPass', evil('askPass')],
        ['core.pager', evil('pager')],
        ['core.editor', evil('editor')],
        ['core.alternateRefsCommand', evil('alternateRefs')],
        ['filter.evil.clean', evil('clean', 'cat')],
        ['filter.evil.smudge', evil('smudge', 'cat')],
        ['diff.external', evil('external')],
        ['diff.evil.textconv', evil('textconv', 'cat "$1"')],
        ['diff.evil.command', evil('diffCommand')],
        ['merge.evil.driver', evil('mergeDriver')],
        ['credential.helper', `!${evil('credential')}`],
        ['submodule.lib.update', `!${evil('submodule')}`],
        ['submodule.lib.active', 'true'],
        ['protocol.ext.allow', 'always'],
        [`url.ext::${evil('insteadOf')} %S.insteadOf`, 'evil:'],
        ['remote.origin.uploadpack', evil('uploadpack')],
        ['remote.origin.receivepack', evil('receivepack')],
        ['gpg.program', evil('gpg')],
        ['commit.gpgSign', 'true'],
        ['include.path', world.box.path('included')],
      ]
      const quoted = (text: string): string => `'${text}'`
      const told = await plant(
        scene,
        [
          `echo 'new.txt filter=included' >> .gitattributes`,
          `echo 'notes.txt merge=evil' > "$(git rev-parse --git-common-dir)/info/attributes"`,
          ...entries.map(([key, value]) => `git config ${quoted(key)} ${quoted(value)}`),
        ].join('\n'),
      )
      for (const [key] of entries) expect(told.toLowerCase()).toContain(`${key.split('.')[0] ?? ''}.`.toLowerCase())
      expect(told).toContain(`set \`core.fsmonitor = ${world.box.path('evil-fsmonitor')}\``)
      expect(told).toMatch(/Git's own files changed during the run/)
      expect(told).toContain('`info/attributes` of the repository was added')
      await everything(scene)
      expect(canaries()).toEqual([])

      // All of it is live: a person's git runs it.
      const { path } = tree
      expect(existsSync(path)).toBe(true)
      plainly(scene, path, 'status')
      plainly(scene, path, 'add', '-A')
      plainly(scene, path, 'diff', 'HEAD~1')
      plainly(scene, path, '-c', 'diff.external=', '-c', 'diff.evil.command=', 'log', '-p', '-1')
      plainly(scene, path, 'fetch', 'origin')
      plainly(scene, path, 'ls-remote', 'evil:x')
      plainly(scene, path, 'ls-remote', 'ssh://example.invalid/x')
      plainly(scene, path, 'checkout', '-q', '--detach')
      plainly(scene, repo.path, 'merge-tree', '--write-tree', 'main', tree.branch)
      const live = ['clean', 'external', 'fsmonitor', 'hooksPath', 'include', 'insteadOf', 'mergeDriver', 'smudge']
      expect(canaries()).toEqual(expect.arrayContaining([...live, 'sshCommand', 'textconv', 'uploadpack']))
    })
  })

  test("in the worktree's own configuration", async () => {
    await withScene(async (scene) => {
      const { evil, tree, canaries } = scene
      const told = await plant(
        scene,
        `git config extensions.worktreeConfig true
         git config --worktree core.fsmonitor '${evil('fsmonitor')}'
         git config --worktree filter.evil.clean '${evil('clean', 'cat')}'
         git config --worktree diff.external '${evil('external')}'`,
      )
      expect(told).toMatch(/this worktree's configuration: set `core\.fsmonitor = /)
      expect(told).toMatch(/the repository's configuration: set `extensions\.worktreeConfig = true`/i)
      // First without a removal, after which git's record of the worktree is a new one.
      await scene.server.ask('T1', '/diff')
      plainly(scene, tree.path, 'status')
      expect(canaries()).toContain('fsmonitor')
      scene.forget()
      await everything(scene)
      expect(canaries()).toEqual([])
    })
  })

  test('as hooks', async () => {
    await withScene(async (scene) => {
      const { evil, tree, canaries } = scene
      const names = [
        'post-checkout',
        'post-index-change',
        'reference-transaction',
        'pre-commit',
        'pre-push',
        'post-merge',
      ]
      const told = await plant(
        scene,
        `hooks="$(git rev-parse --git-common-dir)/hooks"; mkdir -p "$hooks"
         ${names.map((name) => `cp '${evil(name, 'exit 0')}' "$hooks/${name}"`).join('\n')}`,
      )
      for (const name of names) expect(told).toContain(`the hook \`${name}\` was added`)
      await everything(scene)
      expect(canaries()).toEqual([])
      plainly(scene, tree.path, 'checkout', '-q', '--detach')
      expect(canaries()).toContain('post-checkout')
    })
  })

  test.each([
    ['rewritten to point at a repository of its own', `echo "gitdir: $EVIL" > .git`],
    ['replaced by a repository of its own', `rm .git; cp -r "$EVIL" .git`],
    ['replaced by a link', `rm .git; ln -s "$EVIL" .git`],
  ])('the .git file of the worktree, %s: it is not used until it is put right', async (_, how) => {
    await withScene(async (scene) => {
      const { evil, tree, canaries, world, server } = scene
      const link = readFileSync(join(tree.path, '.git'), 'utf8')
      const own = world.box.repo('evil-repository')
      own.git('config', 'core.fsmonitor', evil('fsmonitor'))
      const told = await plant(scene, `EVIL='${join(own.path, '.git')}'\n${how}`)
      expect(told).toContain('the `.git` file of this worktree was changed')
      scene.forget()
      const refused = await server.ask('T1', 'touch ran-here')
      expect(refused.map(({ role }) => role)).toEqual(['system'])
      expect(existsSync(join(tree.path, 'ran-here'))).toBe(false)
      await everything(scene)
      expect(canaries()).toEqual([])
      // Nothing was lost by it, and put right it goes on.
      expect(readFileSync(join(tree.path, 'new.txt'), 'utf8')).toBe('new\n')
      plainly(scene, tree.path, 'status')
      expect(canaries()).toEqual(['fsmonitor'])
      rmSync(join(tree.path, '.git'), { recursive: true })
      writeIn(tree.path, '.git', link)
      const again = await server.ask('T1', 'cat new.txt')
      expect(again.map(({ text }) => text)).toContain('new\n')
    })
  })

  test("git's record of the worktree, led to another repository", async () => {
    await withScene(async (scene) => {
      const { evil, tree, canaries, world, repo } = scene
      const own = world.box.repo('evil-repository')
      own.git('config', 'core.fsmonitor', evil('fsmonitor'))
      const told = await plant(scene, `echo '${join(own.path, '.git')}' > "$(git rev-parse --git-dir)/commondir"`)
      expect(told).toContain("`commondir` in git's record of this worktree was changed")
      plainly(scene, tree.path, 'status')
      expect(canaries()).toEqual(['fsmonitor'])
      scene.forget()
      await everything(scene)
      expect(canaries()).toEqual([])
      expect(repo.git('log', '-1', '--format=%s', tree.branch)).toBe('work')
    })
  })
})
