import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { publicationText } from '../../src/commands/pull-request/texts.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { PublishRequest } from '../../src/isolation/publish/publish.ts'
import { type Publication, publish } from '../../src/isolation/publish/publish.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { trustEnvironment } from '../../src/isolation/providers/checkout/trust-environment.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { type GithubDouble, startDouble } from '../platforms/github-double.ts'
import { inside, issue, resolved } from './scene.ts'

/* Push and pull request, with real git and a GitHub that refuses as GitHub does. */

let double: GithubDouble
beforeEach(async () => {
  double = await startDouble()
})
afterEach(() => double.close())

const secrets = createSecrets(['a-secret-of-ours'])
const forge = () => {
  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
  return createGithubForge(
    { token: 'ghp_x', apiUrl: double.url },
    { log, clock: Date.now, secrets },
    { timeoutMs: 10_000 },
  )
}

/** Its remote is a mirror on this disk of a repository that GitHub has. */
const aWorld = async (options: WorldOptions = {}): Promise<World> => {
  const world = await makeWorld({ remote: true, ...options, context: { forge: forge(), secrets, ...options.context } })
  await world.context.store.codebases.update(world.codebase.id, { github: 'acme/app' })
  double.branches = () => branchesOf(world)
  return { ...world, codebase: { ...world.codebase, github: 'acme/app' } }
}

const origin = (world: World, ...args: string[]): string => world.box.raw(world.box.path('origin.git'), ...args)
const branchesOf = (world: World): string[] =>
  origin(world, 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')

const program = (path: string, lines: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${lines}`, { mode: 0o755 })
}

const pr = (world: World, environment: IsolatedEnvironment, request?: PublishRequest): Promise<Publication> =>
  publish(world.context, world.codebase, environment, request)

const text = (publication: Publication): string => publicationText(publication, { ...asProgram, now: 0 })

const said = async (world: World, environment: IsolatedEnvironment): Promise<string> =>
  text(await pr(world, environment))

test('a branch is pushed and gets a draft pull request that links its issue; a message there finds the same worktree', async () => {
  await using world = await aWorld()
  const environment = await issue(world, 42)
  const there = inside(world, environment)
  const message =
    'Fix the login\n\nIt failed for @everybody with a-secret-of-ours. <!--\n\nTested: npm test\nSigned-off-by: Ada'
  const tip = there.commit('a.txt', 'a\n', message)
  there.write('left.txt', 'not committed\n')
  const publication = await pr(world, environment)
  expect(text(publication)).toBe(
    'Opened draft pull request #7: https://github.test/acme/app/pull/7\n1 file with uncommitted changes was not pushed.',
  )
  expect(origin(world, 'rev-parse', 'issue-42')).toBe(tip)
  expect(world.repo.git('rev-parse', 'refs/remotes/origin/issue-42')).toBe(tip)
  expect(double.opened).toMatchObject([
    { title: 'Fix the login', draft: true, base: { ref: 'main' }, head: { label: 'acme:issue-42' } },
  ])
  expect(double.opened[0]?.body).toBe(
    'Fixes #42\n\nIt failed for @\u200beverybody with [hidden]. &lt;!--\n\n## How it was checked\n\n- npm test',
  )
  expect(await world.context.store.environments.aliases(environment.id)).toEqual([{ type: 'pr', id: '7' }])
  const hints = { prBranch: 'issue-42', isForkPR: false, prSha: tip }
  expect((await resolved(world, 'pr', 7, { hints })).environment.id).toBe(environment.id)
})

test('a title that is given is one line without secrets and mentions', async () => {
  await using world = await aWorld()
  const environment = await issue(world, 42)
  inside(world, environment).commit('a.txt', 'a\n')
  await pr(world, environment, { title: 'Fix\nthe\u202E login of a-secret-of-ours for @alice' })
  expect(double.opened).toMatchObject([{ title: 'Fix the login of [hidden] for @\u200balice' }])
})

test("a fork's branch is pushed under its own name, whatever the fork calls it", async () => {
  await using world = await aWorld()
  world.repo.git(
    'push',
    '-q',
    'origin',
    `${world.repo.git('commit-tree', '-m', 'theirs', '-p', 'main', 'main^{tree}')}:refs/pull/9/head`,
  )
  const { environment } = await resolved(world, 'pr', 9, { hints: { isForkPR: true, prBranch: 'release' } })
  inside(world, environment).commit('a.txt', 'a\n')
  await trustEnvironment(world.context, world.codebase, environment)
  const trusted = await world.context.store.environments.get(environment.id)
  if (trusted === undefined) throw new Error('no environment')
  expect(await pr(world, trusted)).toMatchObject({ outcome: 'published', branch: 'pr-9-review' })
  expect(branchesOf(world).toSorted()).toEqual(['main', 'pr-9-review'])
})

test('called again, it pushes what is new and says which pull request is open', async () => {
  await using world = await aWorld()
  const environment = await issue(world, 42)
  const there = inside(world, environment)
  there.commit('a.txt', 'a\n')
  await pr(world, environment)
  const tip = there.commit('b.txt', 'b\n')
  const url = 'https://github.test/acme/app/pull/7'
  expect(await said(world, environment)).toBe(
    `Pushed issue-42 to origin; draft pull request #7 is already open: ${url}`,
  )
  expect(origin(world, 'rev-parse', 'issue-42')).toBe(tip)
  expect(await said(world, environment)).toBe(
    `issue-42 is up to date on origin; draft pull request #7 is already open: ${url}`,
  )
  expect(double.opened).toHaveLength(1)
})

describe('GitHub', () => {
  const committed = async (): Promise<[World, IsolatedEnvironment]> => {
    const world = await aWorld()
    const environment = await issue(world, 1)
    inside(world, environment).commit('a.txt', 'a\n')
    return [world, environment]
  }

  test('has no drafts on this plan: an ordinary pull request is opened', async () => {
    double.hasDrafts = false
    const [world, environment] = await committed()
    await using _ = world
    expect(await said(world, environment)).toBe('Opened pull request #7: https://github.test/acme/app/pull/7')
  })

  test('refuses for lack of a permission: the branch is pushed, and the answer names the permission', async () => {
    double.mayOpen = false
    const [world, environment] = await committed()
    await using _ = world
    expect(await said(world, environment)).toBe(
      [
        'Pushed issue-1 to origin: 1 commit not in main.',
        "GitHub didn't open a pull request: Resource not accessible by integration.",
        'The token or app needs the permission "Pull requests: read and write" on this repository.',
      ].join('\n'),
    )
    expect(branchesOf(world)).toContain('issue-1')
  })

  test('lost the answer, or somebody was faster: the pull request is found', async () => {
    const [world, environment] = await committed()
    await using _ = world
    double.trouble = (request) => (request.startsWith('POST') ? 'lost' : undefined)
    expect(await pr(world, environment)).toMatchObject({ opened: { outcome: 'opened', pullRequest: { number: 7 } } })
    let looked = 0
    double.trouble = (request) =>
      request.startsWith('GET') && (looked += 1) === 1 ? { status: 200, body: [] } : undefined
    expect(await pr(world, environment)).toMatchObject({ opened: { outcome: 'exists', pullRequest: { number: 7 } } })
    expect(double.opened).toHaveLength(1)
  })

  test('is down: the branch is pushed', async () => {
    const [world, environment] = await committed()
    await using _ = world
    double.trouble = () => ({ status: 502, body: { message: 'Bad Gateway' } })
    expect(await said(world, environment)).toMatch(
      /^Pushed issue-1 to origin.*\nCouldn't reach GitHub to open a pull request: Bad Gateway\.\nThe branch is pushed/,
    )
  })

  test('is not where the remote is: nothing is asked, and a known host gets a link', async () => {
    const [world, environment] = await committed()
    await using _ = world
    world.box.raw(
      world.box.root,
      'config',
      '--global',
      `url.${world.box.path('origin.git')}.insteadOf`,
      'git@gitlab.com:acme/app.git',
    )
    world.repo.git('remote', 'set-url', 'origin', 'git@gitlab.com:acme/app.git')
    const codebase = { ...world.codebase, remoteUrl: 'git@gitlab.com:acme/app.git' }
    expect(text(await publish(world.context, codebase, environment))).toBe(
      'Pushed issue-1 to origin: 1 commit not in main.\nOpen the pull request: https://gitlab.com/acme/app/-/merge_requests/new?merge_request[source_branch]=issue-1',
    )
    expect(double.requests).toEqual([])
  })
})

describe('is not pushed, and the answer says why:', () => {
  test('a branch without commits', async () => {
    await using world = await aWorld()
    const environment = await issue(world, 1)
    expect(await said(world, environment)).toBe("issue-1 has no commits that origin/main doesn't have.")
    inside(world, environment).write('a.txt', 'a\n')
    expect(await said(world, environment)).toContain('1 file has uncommitted changes: commit them')
  })

  test("a fork's, until somebody vouches for it", async () => {
    await using world = await aWorld()
    world.repo.git(
      'push',
      '-q',
      'origin',
      `${world.repo.git('commit-tree', '-m', 'theirs', '-p', 'main', 'main^{tree}')}:refs/pull/9/head`,
    )
    const { environment } = await resolved(world, 'pr', 9, { hints: { isForkPR: true, prBranch: 'main' } })
    inside(world, environment).commit('a.txt', 'a\n')
    expect(await said(world, environment)).toMatch(
      /^pr-9-review wasn't pushed: it's from a fork.*\n.*coppice worktree trust pr-9-review$/,
    )
    const trusted = { ...environment, trust: 'lapsed' } as const
    expect(await pr(world, trusted)).toMatchObject({ why: { kind: 'untrusted', trust: 'lapsed' } })
    expect(branchesOf(world)).toEqual(['main'])
  })

  test('the base branch, under whatever name it is checked out', async () => {
    await using world = await aWorld()
    const environment = await issue(world, 1)
    inside(world, environment).commit('a.txt', 'a\n')
    const disguised = { ...environment, work: { type: 'pr', id: '3' }, prBranch: 'main', prNumber: 3 } as const
    expect(await pr(world, disguised)).toMatchObject({ why: { kind: 'is-base', base: 'main' } })
    expect(origin(world, 'rev-parse', 'main')).toBe(world.repo.git('rev-parse', 'main'))
  })

  test('another branch that is checked out there, or none', async () => {
    await using world = await aWorld()
    const environment = await issue(world, 1)
    const there = inside(world, environment)
    there.commit('a.txt', 'a\n')
    there.git('switch', '-q', '--detach')
    expect(await said(world, environment)).toMatch(/^issue-1 wasn't pushed: no branch is checked out/)
    there.git('switch', '-q', '-c', 'other')
    expect(await said(world, environment)).toMatch(/another branch \(other\) is checked out.*\nSwitch back: git -C/)
  })

  test.each([
    ['address', true, []],
    ['address to push to', true, ['--push']],
    ['address to push to, where none was recorded,', false, ['--push']],
  ])('to a remote whose %s was changed behind our back', async (_what, isRecorded, options) => {
    await using world = await aWorld()
    const environment = await issue(world, 1)
    inside(world, environment).commit('a.txt', 'a\n')
    const codebase = { ...world.codebase, remoteUrl: isRecorded ? world.box.path('origin.git') : undefined }
    inside(world, environment).git('remote', 'set-url', ...options, 'origin', world.box.path('elsewhere.git'))
    world.box.bare('elsewhere.git')
    expect(await publish(world.context, codebase, environment)).toMatchObject({ why: { kind: 'remote-changed' } })
    expect(world.box.raw(world.box.path('elsewhere.git'), 'for-each-ref')).toBe('')
  })

  test('in a repository without a remote', async () => {
    await using world = await makeWorld()
    expect(await said(world, await issue(world, 1))).toBe(
      "The repository has no remote, so there's nowhere to push to.",
    )
  })

  test('over commits that the remote has: they are fetched, and stay', async () => {
    await using world = await aWorld()
    const environment = await issue(world, 1)
    inside(world, environment).commit('a.txt', 'a\n')
    const theirs = world.repo.git('commit-tree', '-m', 'theirs', '-p', 'main', 'main^{tree}')
    world.repo.git('push', '-q', 'origin', `${theirs}:refs/heads/issue-1`)
    expect(await said(world, environment)).toMatch(
      /^issue-1 wasn't pushed: the remote has commits on it that aren't here\.\nIt has been fetched: merge it/,
    )
    expect(origin(world, 'rev-parse', 'issue-1')).toBe(theirs)
    expect(world.repo.git('rev-parse', 'refs/remotes/origin/issue-1')).toBe(theirs)
  })

  const hooks: Record<string, [string, string]> = {
    'workflows need their own permission': [
      'refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission',
      'Workflows: read and write',
    ],
    'a rule protects the branch': ['GH013: Repository rule violations found for refs/heads/issue-1.', 'rules protect'],
    'a server says no in its own words': ['no pushes on Fridays', 'no pushes on Fridays'],
  }
  test.each(Object.entries(hooks))('%s', async (_name, [words, expected]) => {
    await using world = await aWorld()
    const environment = await issue(world, 1)
    inside(world, environment).commit('a.txt', 'a\n')
    program(world.box.path('origin.git/hooks/pre-receive'), `cat >&2 <<'EOF'\nerror: ${words}\nEOF\nexit 1\n`)
    const answer = await said(world, environment)
    expect(answer).toMatch(/^The remote rejected issue-1: /)
    expect(answer).toContain(expected)
  })
})

test.each([
  ['address', ['remote', 'set-url', 'origin']],
  ['address to push to', ['remote', 'set-url', '--push', 'origin']],
])('a push goes to the address that was checked, even if the %s changes right after', async (_what, args) => {
  let afterCheck = (): void => undefined
  await using world = await aWorld({ context: { progress: (line) => line.startsWith('pushing') && afterCheck() } })
  const environment = await issue(world, 1)
  const there = inside(world, environment)
  const tip = there.commit('a.txt', 'a\n')
  world.box.bare('elsewhere.git')
  afterCheck = () => void there.git(...args, world.box.path('elsewhere.git'))
  expect(await pr(world, environment)).toMatchObject({ outcome: 'published' })
  expect(there.git('remote', 'get-url', '--push', 'origin')).toBe(world.box.path('elsewhere.git'))
  expect(world.box.raw(world.box.path('elsewhere.git'), 'for-each-ref')).toBe('')
  expect(origin(world, 'rev-parse', 'issue-1')).toBe(tip)
})

test("a pull request's own branch is updated under its own name", async () => {
  await using world = await aWorld()
  world.repo.git('push', '-q', 'origin', 'main:refs/heads/fix-login')
  world.repo.git('fetch', '-q', 'origin')
  const hints = { prBranch: 'fix-login', isForkPR: false }
  world.repo.git('switch', '-q', '-c', 'fix-login')
  const { environment } = await resolved(world, 'pr', 5, { hints })
  expect(environment.branch).toBe('pr-5')
  const tip = inside(world, environment).commit('a.txt', 'a\n')
  expect(await pr(world, environment)).toMatchObject({ branch: 'fix-login', change: 'updated' })
  expect(origin(world, 'rev-parse', 'fix-login')).toBe(tip)
})

test('a clone is published like a worktree, and the repository gets no branch of its own for it', async () => {
  await using world = await aWorld({ settings: { isolationProvider: 'clone' } })
  const environment = await issue(world, 8)
  const tip = inside(world, environment).commit('a.txt', 'a\n')
  expect(await pr(world, environment)).toMatchObject({ opened: { outcome: 'opened' } })
  expect(origin(world, 'rev-parse', 'issue-8')).toBe(tip)
})

test("the repository's own settings add nothing to a push, and no hook of it runs", async () => {
  await using world = await aWorld()
  const environment = await issue(world, 1)
  const there = inside(world, environment)
  there.commit('a.txt', 'a\n')
  there.git('tag', '-a', 'v1', '-m', 'v1')
  there.git('config', 'push.followTags', 'true')
  there.git('config', 'push.pushOption', 'merge_request.create')
  there.git('config', 'push.gpgSign', 'true')
  there.git('config', 'push.negotiate', 'true')
  // Would push the submodules and leave out the branch.
  there.git('config', 'push.recurseSubmodules', 'only')
  there.git('config', 'core.hooksPath', world.box.path('project/.git/hooks'))
  program(world.box.path('project/.git/hooks/pre-push'), `touch '${world.box.path('ran')}'\n`)
  expect(await pr(world, environment)).toMatchObject({ outcome: 'published' })
  expect(origin(world, 'tag')).toBe('')
  expect(existsSync(world.box.path('ran'))).toBe(false)
})
