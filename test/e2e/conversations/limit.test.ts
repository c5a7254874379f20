import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import type { TestRepo } from '../../helpers/repo.ts'
import { makeServerWorld, onEachDatabase } from '../../helpers/server-process.ts'

/** More at once than the ten connections to PostgreSQL, and than are worked on by default. */
const CONVERSATIONS = 16
const LIMIT = 11

/** Files with their bytes, HEAD, index and branches that are not an environment's: what must not change. */
const checkoutOf = (repo: TestRepo): unknown => ({
  status: repo.git('status', '--porcelain', '--ignored', '--untracked-files=all'),
  head: repo.git('symbolic-ref', 'HEAD'),
  index: repo.git('ls-files', '--stage'),
  refs: repo
    .git('for-each-ref', '--format=%(refname) %(objectname)')
    .split('\n')
    .filter((line) => !line.startsWith('refs/heads/thread-')),
  stash: repo.git('stash', 'list'),
  files: readdirSync(repo.path).toSorted(),
  readme: readFileSync(join(repo.path, 'README'), 'utf8'),
})

onEachDatabase((database, name) => {
  // As many as are worked on by default, and all at once where that is more than there are connections.
  test.each(name === 'sqlite' ? [10] : [CONVERSATIONS])(
    '16 messages at once with a limit of 11 and %i conversations at a time: 11 environments, 5 refusals that help, nothing in the shared checkout',
    async (concurrent) => {
      await using world = makeServerWorld({
        env: {
          COPPICE_AGENT_COMMAND: 'pwd -P; git rev-parse --abbrev-ref HEAD',
          MAX_WORKTREES_PER_CODEBASE: String(LIMIT),
          MAX_CONCURRENT_CONVERSATIONS: String(concurrent),
          ...(await database()),
        },
      })
      const repo = await world.project()
      const checkout = checkoutOf(repo)
      const server = await world.serve()
      const names = Array.from({ length: CONVERSATIONS }, (_, n) => `thread ${n}`)
      await Promise.all(names.map((name) => server.say(name, 'go on')))
      await server.quiet()

      const heard = await Promise.all(names.map((name) => server.messages(name)))
      const answered = heard.filter((said) => said.some(({ role }) => role === 'agent'))
      const refused = heard.filter((said) => !said.some(({ role }) => role === 'agent'))
      expect([answered.length, refused.length]).toEqual([LIMIT, CONVERSATIONS - LIMIT])
      for (const said of refused) {
        expect(said.map(({ text }) => text)).toEqual([
          'go on',
          [
            'You have 11 active worktrees for **project** (limit reached).',
            ' 0 merged   0 stale (no activity in 14+ days)   11 active',
            ' `/worktree list` · `/worktree remove <name>`',
            ' Nothing was run. Remove a worktree, then send your message again.',
          ].join('\n'),
        ])
      }

      const trees = await world.json<EnvironmentJson[]>(repo.path, 'worktree', 'list')
      expect(trees).toHaveLength(LIMIT)
      expect(trees.every(({ status }) => status === 'active')).toBe(true)
      const worktrees = repo.git('worktree', 'list', '--porcelain').match(/^worktree .*/gm) ?? []
      expect(worktrees.toSorted()).toEqual(
        [repo.path, ...trees.map(({ path }) => path)].map((p) => `worktree ${p}`).toSorted(),
      )
      expect(repo.git('branch', '--list', 'thread-*', '--format=%(refname:short)').split('\n').toSorted()).toEqual(
        trees.map(({ branch }) => branch).toSorted(),
      )
      // Every agent ran in a tree of its own, and none in the checkout.
      const places = answered.map((said) => said.find(({ role }) => role === 'agent')?.text.split('\n')[0] ?? '')
      expect(places.toSorted()).toEqual(trees.map(({ path }) => path).toSorted())
      expect(checkoutOf(repo)).toEqual(checkout)
    },
  )
})
