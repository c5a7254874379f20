import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { certificate, type HttpsGit, publish, serveGit } from '../helpers/https-git.ts'
import type { Sandbox } from '../helpers/repo.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { inside, resolved } from '../isolation/scene.ts'

/*
 * A pull request names its own submodules. What is not trusted gets those of base, from base's addresses, and nobody's
 * credentials go anywhere for it.
 */

let server: HttpsGit
let world: World
let served: string

const submodule = (name: string, path: string, url: string): string =>
  `[submodule "${name}"]\n\tpath = ${path}\n\turl = ${url}\n`

/** What base has; `open` and `closed` are really there. */
const ofBase = (): string =>
  [
    submodule('open', 'open', `${server.url}/open.git`),
    submodule('closed', 'closed', `${server.url}/closed.git`),
    submodule('away', 'away', `${server.url}/away.git`),
    submodule('moved', 'moved', `${server.url}/open.git`),
    submodule('renamed', 'renamed', `${server.url}/open.git`),
    submodule('local', 'local', join(served, 'open.git')),
    submodule('file', 'file', `file://${join(served, 'open.git')}`),
    submodule('near', 'near', '../served/open.git'),
  ].join('')

const ofFork = (): string =>
  ofBase()
    .replace(/(path = moved\n\turl = ).*/, `$1${server.url}/evil.git`)
    .replace('[submodule "renamed"]', '[submodule "other"]') + submodule('extra', 'extra', `${server.url}/evil.git`)

const library = (box: Sandbox, name: string): string => {
  const repo = box.repo(`${name}-source`)
  repo.commit('.gitmodules', submodule('deeper', 'deeper', `${server.url}/evil.git`))
  repo.git('update-index', '--add', '--cacheinfo', `160000,${repo.sha()},deeper`)
  repo.git('commit', '-q', '-m', 'one of its own')
  box.raw(box.root, 'clone', '-q', '--bare', repo.path, join(served, `${name}.git`))
  publish(join(served, `${name}.git`))
  return repo.sha()
}

beforeAll(async () => {
  world = await makeWorld({
    remote: true,
    prepare: (_repo, box) => {
      served = box.path('served')
      mkdirSync(served)
    },
  })
  server = await serveGit(served)
  const { box, repo } = world
  writeFileSync(box.path('cert.pem'), certificate)
  appendFileSync(join(box.home, '.gitconfig'), `[http]\n\tsslCAInfo = ${box.path('cert.pem')}\n`)
  const sha = library(box, 'open')
  for (const name of ['closed', 'elsewhere', 'evil']) {
    box.raw(box.root, 'clone', '-q', '--bare', join(served, 'open.git'), join(served, `${name}.git`))
    publish(join(served, `${name}.git`))
  }
  const commit = (gitmodules: string, paths: readonly string[]): void => {
    repo.write('.gitmodules', gitmodules)
    repo.git('add', '.gitmodules')
    for (const path of paths) repo.git('update-index', '--add', '--cacheinfo', `160000,${sha},${path}`)
    repo.git('commit', '-q', '-m', 'submodules')
  }
  const paths = ['open', 'closed', 'away', 'moved', 'renamed', 'local', 'file', 'near']
  commit(ofBase(), paths)
  repo.git('push', '-q', 'origin', 'main')
  repo.git('switch', '-q', '-c', 'forked')
  commit(ofFork(), [...paths, 'extra'])
  repo.git('push', '-q', 'origin', 'forked:refs/pull/96/head', 'forked:refs/pull/97/head')
  repo.git('switch', '-q', 'main')
  repo.git('branch', '-q', '-D', 'forked')
})
afterAll(async () => {
  await server.close()
  await world[Symbol.asyncDispose]()
})

const withToken = (): World => {
  const { context, box } = world
  const git = box.git({
    home: context.home,
    login: async () => ({ host: server.host, secret: 'our-token-0123456789' }),
  })
  const own = { ...context, git }
  return { ...world, context: own, provider: createEnvironments(own) }
}

/** Where curl and git find credentials by themselves. */
const credentialsOnDisk = (): Disposable => {
  const { box, repo } = world
  const [netrc, config] = [join(box.home, '.netrc'), join(box.home, '.gitconfig')]
  const before = readFileSync(config)
  const rule = `url.https://tok:insteadsecret@${server.host}/.insteadOf`
  writeFileSync(netrc, 'machine localhost login nu password netrcsecret\n')
  box.raw(box.root, 'config', '--global', rule, `${server.url}/`)
  repo.git('config', rule, `${server.url}/`)
  return {
    [Symbol.dispose]: () => {
      rmSync(netrc)
      writeFileSync(config, before)
      repo.git('config', '--unset-all', rule)
    },
  }
}

test.each([{ isForkPR: true }, {}])(
  'a pull request that is not trusted gets base’s submodules only, without credentials, not even those of .netrc or a rewritten address: %j',
  async (hints) => {
    server.asked.length = 0
    using _ = credentialsOnDisk()
    const number = hints.isForkPR === true ? 96 : 97
    const { environment, notices } = await resolved(withToken(), 'pr', number, { hints })
    const tree = inside(world, environment)
    expect(tree.has('open/README')).toBe(true)
    for (const path of ['closed', 'away', 'moved', 'renamed', 'local', 'file', 'near', 'extra', 'open/deeper']) {
      expect([path, tree.has(`${path}/README`)]).toEqual([path, false])
    }
    const named = notices.flatMap((notice) => /^Submodule (\S+) was not fetched/.exec(notice)?.[1] ?? [])
    expect(named.toSorted()).toEqual(['away', 'closed', 'extra', 'file', 'local', 'moved', 'near', 'renamed'])
    expect([...new Set(server.asked.map(({ repository }) => repository))].toSorted()).toEqual([
      'away.git',
      'closed.git',
      'open.git',
    ])
    expect(server.asked.filter(({ authorization }) => authorization !== undefined)).toEqual([])
  },
)

test('our own work gets its submodules with our credentials', async () => {
  server.asked.length = 0
  const own = withToken()
  const { repo } = world
  repo.write('.gitmodules', submodule('closed', 'closed', `${server.url}/closed.git`))
  const gone = ['open', 'away', 'moved', 'renamed', 'local', 'file', 'near']
  repo.git('update-index', '--force-remove', '--', ...gone)
  repo.git('add', '.gitmodules')
  repo.git('commit', '-q', '-m', 'one')
  repo.git('push', '-q', 'origin', 'main')
  const { environment } = await resolved(own, 'issue', 1)
  expect(inside(world, environment).has('closed/deeper/README')).toBe(true)
  const sent = server.asked.filter(({ repository }) => repository === 'closed.git')
  expect(sent.some(({ authorization }) => authorization?.startsWith('Basic ') === true)).toBe(true)
})
