import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { markerProgram, type TestRepo, writeIn } from '../helpers/repo.ts'
import { makeServerWorld, type ServerProcess, type ServerWorld, textsOf } from '../helpers/server-process.ts'

/*
 * An agent plants what git would run into the repository's and its worktree's own files. Whatever Coppice does next, by
 * chat or by command line, runs none of it: each plant has a canary of its own, and plain git shows that it is live.
 */

type Scene = {
  readonly world: ServerWorld
  readonly server: ServerProcess
  readonly repo: TestRepo & { readonly origin: string }
  /** The worktrees of the conversations T1, T2, and so on. */
  readonly trees: readonly Planted[]
  /** A program that leaves the canary of this name. */
  readonly evil: (name: string, then?: string) => string
  readonly canaries: () => string[]
  readonly forget: () => void
}

type Planted = { readonly thread: string; readonly path: string; readonly branch: string }

const nth = (trees: readonly Planted[], n: number): Planted => {
  const tree = trees[n]
  if (tree === undefined) throw new Error(`there is no worktree ${n}`)
  return tree
}

/** Work to look at: a commit, a change, an untracked file, and attributes for every kind of driver. */
const work = `printf 'notes.txt filter=evil diff=evil merge=evil\\n' > .gitattributes; echo two > notes.txt; git add .; git commit -qm work; echo three > notes.txt; echo new > new.txt; pwd`

/** A server with this many conversations at work. The agent runs what it is told: the message is a script. */
const withScene = async (threads: number, act: (scene: Scene) => Promise<void>): Promise<void> => {
  await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: 'sh -s' } })
  const repo = await world.project()
  repo.commit('notes.txt', 'one\n')
  repo.git('push', '-q', 'origin', 'main')
  const nest = world.box.path('canaries')
  mkdirSync(nest)
  const server = await world.serve()
  const trees = await Promise.all(Array.from({ length: threads }, (_, n) => begin(server, `T${n + 1}`)))
  // So that a merge of both has something to do.
  repo.commit('notes.txt', 'other\n')
  await act({
    world,
    server,
    repo,
    trees,
    evil: (name, then = 'exit 1') => markerProgram(world.box.path(`evil-${name}`), join(nest, name), then),
    canaries: () => readdirSync(nest),
    forget: () => {
      for (const name of readdirSync(nest)) rmSync(join(nest, name))
    },
  })
  await server.stop()
}

const begin = async (server: ServerProcess, thread: string): Promise<Planted> => {
  const begun = textsOf(await server.ask(thread, work)).join('\n')
  const [, branch] = /Working in isolated branch `(.+?)`/.exec(begun) ?? []
  const [path] = /^\/.*$/m.exec(begun) ?? []
  if (branch === undefined || path === undefined) throw new Error(`there is no worktree: ${begun}`)
  return { thread, path, branch }
}

/** Says the script to the agent and answers what the thread was told of it. */
const plant = async ({ server, forget }: Scene, thread: string, script: string): Promise<string> => {
  const said = await server.ask(thread, script)
  // What the agent's own git ran is the agent's affair.
  forget()
  return textsOf(said.filter(({ role }) => role === 'system')).join('\n')
}

/** Everything that comes next, whether it succeeds or is refused; with the exit codes of the command line. */
const everything = async ({ world, server, repo, trees }: Scene): Promise<Map<string, number | null>> => {
  const inEach = (text: string): Promise<unknown> => Promise.all(trees.map(({ thread }) => server.ask(thread, text)))
  for (const text of ['/status', '/diff', 'echo again']) await inEach(text)
  for (const command of ['/worktree list', '/worktree orphans', '/worktree cleanup merged']) {
    await server.ask('T1', command)
  }
  await server.ask('new', 'echo a new conversation')
  const commands = [
    ['worktree', 'list'],
    ['status'],
    ['cleanup', '--dry-run'],
    ['doctor'],
    ['worktree', 'create', 'another'],
    ...trees.flatMap(({ branch }) => [
      ['diff', branch],
      ['worktree', 'remove', branch],
      ['worktree', 'remove', branch, '--force'],
      ['worktree', 'restore', branch],
    ]),
    ['worktree', 'cleanup', 'stale'],
    ['cleanup'],
    ['worktree', 'list'],
  ]
  const codes = new Map<string, number | null>()
  for (const command of commands) codes.set(command.join(' '), (await world.cli(repo.path, ...command)).code)
  await inEach('echo and again')
  return codes
}

/** The exit codes of `diff`, `worktree remove`, the same with `--force`, and `worktree restore`. */
const codesOf = (codes: Map<string, number | null>, { branch }: Planted): (number | null | undefined)[] =>
  [
    `diff ${branch}`,
    `worktree remove ${branch}`,
    `worktree remove ${branch} --force`,
    `worktree restore ${branch}`,
  ].map((command) => codes.get(command))

/** Plain git, whether it succeeds or not: what counts is what it ran. */
const plainly = ({ world: { box } }: Scene, cwd: string, ...args: string[]): void => {
  try {
    box.raw(cwd, ...args)
  } catch {
    // A canary that fails makes git fail.
  }
}

/** How an agent can replace the `.git` file of its worktree; its own repository is `$EVIL`. */
const replacements: Record<string, string> = {
  rewritten: 'echo "gitdir: $EVIL" > .git',
  repository: 'rm .git; cp -r "$EVIL" .git',
  link: 'rm .git; ln -s "$EVIL" .git',
}

// Some thirty commands of real programs each, on a machine that may have other things to do.
describe('what an agent plants is told, and never run by Coppice', { timeout: 300_000 }, () => {
  test('in the configuration of the repository', async () => {
    await withScene(1, async (scene) => {
      const { evil, trees, repo, world, canaries } = scene
      const { path, branch } = nth(trees, 0)
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
        'T1',
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
      expect(codesOf(await everything(scene), nth(trees, 0))).toEqual([0, 3, 0, 0])
      expect(canaries()).toEqual([])

      // All of it is live: a person's git runs it.
      expect(existsSync(path)).toBe(true)
      plainly(scene, path, 'status')
      plainly(scene, path, 'add', '-A')
      plainly(scene, path, 'diff', 'HEAD~1')
      plainly(scene, path, '-c', 'diff.external=', '-c', 'diff.evil.command=', 'log', '-p', '-1')
      plainly(scene, path, 'fetch', 'origin')
      plainly(scene, path, 'ls-remote', 'evil:x')
      plainly(scene, path, 'ls-remote', 'ssh://example.invalid/x')
      plainly(scene, path, 'checkout', '-q', '--detach')
      plainly(scene, repo.path, 'merge-tree', '--write-tree', 'main', branch)
      const live = ['clean', 'external', 'fsmonitor', 'hooksPath', 'include', 'insteadOf', 'mergeDriver', 'smudge']
      expect(canaries()).toEqual(expect.arrayContaining([...live, 'sshCommand', 'textconv', 'uploadpack']))
    })
  })

  /*
   * Each in a worktree of its own, and all at once: what one of them plants is not in the way of the others, and every
   * canary has its own name.
   */
  test("as hooks, in the worktree's own configuration, in its .git file and in git's record of it", async () => {
    await withScene(5, async (scene) => {
      const { evil, trees, canaries, world, server, repo, forget } = scene
      const own = nth(trees, 0)
      const pointed = nth(trees, 1)
      const replaced = Object.entries(replacements).map(([name, how], n) => {
        const tree = nth(trees, n + 2)
        return { ...tree, name, how, link: readFileSync(join(tree.path, '.git'), 'utf8') }
      })
      /** The git directory of one whose `core.fsmonitor` leaves the canary of this name. */
      const evilRepository = (name: string): string => {
        const made = world.box.repo(`evil-${name}-repository`)
        made.git('config', 'core.fsmonitor', evil(name))
        return made.commonDir
      }

      const hooks = [
        'post-checkout',
        'post-index-change',
        'reference-transaction',
        'pre-commit',
        'pre-push',
        'post-merge',
      ]
      const toldOfHooks = await plant(
        scene,
        own.thread,
        `hooks="$(git rev-parse --git-common-dir)/hooks"; mkdir -p "$hooks"
         ${hooks.map((name) => `cp '${evil(name, 'exit 0')}' "$hooks/${name}"`).join('\n')}`,
      )
      for (const name of hooks) expect.soft(toldOfHooks).toContain(`the hook \`${name}\` was added`)

      const toldOfSettings = await plant(
        scene,
        own.thread,
        `git config extensions.worktreeConfig true
         git config --worktree core.fsmonitor '${evil('fsmonitor')}'
         git config --worktree filter.evil.clean '${evil('clean', 'cat')}'
         git config --worktree diff.external '${evil('external')}'`,
      )
      expect.soft(toldOfSettings).toMatch(/this worktree's configuration: set `core\.fsmonitor = /)
      expect.soft(toldOfSettings).toMatch(/the repository's configuration: set `extensions\.worktreeConfig = true`/i)

      const commonDir = evilRepository('commondir')
      const toldOfRecord = await plant(
        scene,
        pointed.thread,
        `echo '${commonDir}' > "$(git rev-parse --git-dir)/commondir"`,
      )
      expect.soft(toldOfRecord).toContain("`commondir` in git's record of this worktree was changed")

      for (const { name, how, thread, path } of replaced) {
        const told = await plant(scene, thread, `EVIL='${evilRepository(name)}'\n${how}`)
        expect.soft(told, name).toContain('the `.git` file of this worktree was changed')
        const refused = await server.ask(thread, 'touch ran-here')
        expect
          .soft(
            refused.map(({ role }) => role),
            name,
          )
          .toEqual(['system'])
        expect.soft(existsSync(join(path, 'ran-here')), name).toBe(false)
      }
      expect.soft(canaries()).toEqual([])

      // Before anything is removed, after which git's record of a worktree is a new one: a person's git runs it.
      plainly(scene, own.path, 'status')
      plainly(scene, pointed.path, 'status')
      expect.soft(canaries()).toEqual(expect.arrayContaining(['commondir', 'fsmonitor']))
      forget()

      const codes = await everything(scene)
      expect.soft(canaries()).toEqual([])
      // What was planted in one worktree keeps nobody from removing and restoring another.
      expect.soft(codesOf(codes, own)).toEqual([0, 3, 0, 0])
      expect.soft(codesOf(codes, pointed)).toEqual([1, 3, 0, 0])
      for (const tree of replaced) expect.soft(codesOf(codes, tree), tree.name).toEqual([1, 3, 3, 1])
      expect.soft(repo.git('log', '-1', '--format=%s', pointed.branch)).toBe('work')
      plainly(scene, own.path, 'checkout', '-q', '--detach')
      expect.soft(canaries()).toContain('post-checkout')

      // No `.git` file was used, nothing was lost by it, and a worktree whose file is put right goes on.
      for (const { name, thread, path, link } of replaced) {
        expect.soft(readFileSync(join(path, 'new.txt'), 'utf8'), name).toBe('new\n')
        forget()
        plainly(scene, path, 'status')
        expect.soft(canaries()).toEqual([name])
        rmSync(join(path, '.git'), { recursive: true })
        writeIn(path, '.git', link)
        expect.soft(textsOf(await server.ask(thread, 'cat new.txt')), name).toContain('new\n')
      }
    })
  })
})
