import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { toSha } from '../domain/names.ts'
import { makeSandbox, markerProgram, type Sandbox } from '../../test/helpers/repo.ts'
import { withAskpass } from './askpass.ts'
import { cloneBare } from './clone-bare.ts'
import { askRemoteHead, fetchRemote } from './fetch.ts'
import { pushCommit } from './push.ts'
import { pushAddressOf, remoteInfo } from './remote.ts'
import { validateRemoteUrl } from './remote-url.ts'
import type { Progress } from './progress.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())
const refspecs = ['+refs/heads/*:refs/remotes/origin/*']

const withRemote = () => {
  const upstream = box.repo('upstream')
  const repo = box.repo()
  repo.git('remote', 'add', 'origin', upstream.path)
  return { upstream, repo }
}

describe('fetching', () => {
  it('updates the tracking refs and leaves nothing else behind', async () => {
    const { upstream, repo } = withRemote()
    upstream.git('tag', 'v1')
    const fetched = await fetchRemote(box.git(), repo, { remote: 'origin', refspecs })
    expect(fetched).toEqual({ outcome: 'fetched', problem: undefined })
    expect(repo.git('rev-parse', 'refs/remotes/origin/main')).toBe(upstream.sha())
    expect(existsSync(join(repo.commonDir, 'FETCH_HEAD'))).toBe(false)
    expect(repo.git('tag')).toBe('')
  })

  it('never prunes: a tracking ref may be the last to hold a commit', async () => {
    const { upstream, repo } = withRemote()
    repo.git('config', 'fetch.prune', 'true')
    upstream.git('branch', 'gone')
    const git = box.git()
    await fetchRemote(git, repo, { remote: 'origin', refspecs })
    upstream.git('branch', '-D', 'gone')
    await fetchRemote(git, repo, { remote: 'origin', refspecs })
    expect(repo.git('rev-parse', 'refs/remotes/origin/gone')).toBe(upstream.sha())
  })

  it('says what is wrong when the remote cannot be reached, in terms of the remote', async () => {
    const { repo } = withRemote()
    repo.git('remote', 'set-url', 'origin', box.path('nowhere'))
    const fetched = await fetchRemote(box.git(), repo, { remote: 'origin', refspecs })
    expect(fetched).toEqual({ outcome: 'unreachable', detail: expect.stringContaining('nowhere') })
    expect(JSON.stringify(fetched)).not.toMatch(/coppice-[0-9a-f]{32}/)
    const none = fetchRemote(box.git(), repo, { remote: 'none', refspecs })
    await expect(none).rejects.toMatchObject({ code: 'remote-unreachable' })
  })

  it('updates the others when one branch became a directory', async () => {
    const { upstream, repo } = withRemote()
    upstream.git('branch', 'a')
    const git = box.git()
    await fetchRemote(git, repo, { remote: 'origin', refspecs })
    upstream.git('branch', '-m', 'a', 'a/b')
    const tip = upstream.commit('x', 'y')
    const fetched = await fetchRemote(git, repo, { remote: 'origin', refspecs })
    expect(fetched).toMatchObject({ outcome: 'fetched', problem: expect.stringContaining('a/b') })
    expect(repo.git('rev-parse', 'refs/remotes/origin/main')).toBe(tip)
  })

  it('understands a relative path as git does, from the top of the checkout', async () => {
    const { repo } = withRemote()
    repo.git('remote', 'set-url', 'origin', '../upstream')
    expect(await fetchRemote(box.git(), repo, { remote: 'origin', refspecs })).toMatchObject({ outcome: 'fetched' })
  })

  it("honours the user's own insteadOf", async () => {
    const { repo } = withRemote()
    box.raw(box.root, 'config', '--global', `url.${box.root}/.insteadOf`, 'work:')
    box.raw(box.root, 'config', '--global', 'url./nowhere/.insteadOf', 'wo')
    repo.git('remote', 'set-url', 'origin', 'work:upstream')
    expect(await fetchRemote(box.git(), repo, { remote: 'origin', refspecs })).toMatchObject({ outcome: 'fetched' })
  })
})

it('pushes where the remote is, whatever the repository would have instead', async () => {
  const { repo } = withRemote()
  const [origin, elsewhere] = [box.bare('origin.git'), box.bare('elsewhere.git')]
  repo.git('remote', 'set-url', 'origin', origin.path)
  for (const prefix of ['', 'coppice-', origin.path]) {
    repo.git('config', '--add', `url.${elsewhere.path}.pushInsteadOf`, prefix)
    repo.git('config', '--add', `url.${elsewhere.path}.insteadOf`, prefix)
  }
  const address = await pushAddressOf(box.git(), repo, 'origin')
  if (address === undefined) throw new Error('the remote has no address')
  const push = { address, remote: 'origin', commit: toSha(repo.sha()), branch: 'issue-1' }
  const pushed = await pushCommit(box.git(), repo, push)
  expect(pushed).toEqual({ outcome: 'pushed', change: 'new' })
  expect(box.raw(origin.path, 'rev-parse', 'issue-1')).toBe(repo.sha())
})

describe('the remote of a repository', () => {
  it("is the current branch's, else origin, else the only one", async () => {
    const repo = box.repo()
    expect(await remoteInfo(box.git(), repo)).toBeUndefined()
    repo.git('remote', 'add', 'fork', '/fork')
    expect(await remoteInfo(box.git(), repo)).toEqual({ name: 'fork', url: '/fork' })
    repo.git('remote', 'add', 'other', '/other')
    expect(await remoteInfo(box.git(), repo)).toBeUndefined()
    repo.git('remote', 'add', 'origin', '/origin')
    expect(await remoteInfo(box.git(), repo)).toEqual({ name: 'origin', url: '/origin' })
    repo.git('config', 'branch.main.remote', 'other')
    expect(await remoteInfo(box.git(), repo)).toEqual({ name: 'other', url: '/other' })
  })

  it('is asked for its default branch', async () => {
    const { upstream, repo } = withRemote()
    upstream.git('branch', '-m', 'main', 'trunk')
    const git = box.git()
    expect(await askRemoteHead(git, repo, 'origin')).toBe('trunk')
  })
})

describe('cloning', () => {
  it('makes a bare repository with remote branches as tracking refs, and fetches into it again', async () => {
    const upstream = box.repo('upstream')
    upstream.git('branch', 'feature/x')
    upstream.git('branch', '-m', 'main', 'trunk')
    upstream.git('tag', 'v1')
    const git = box.git()
    const progress: Progress[] = []
    const path = box.path('clone.git')
    const cloned = await cloneBare(git, upstream.path, path, { onProgress: (step) => progress.push(step) })
    expect(cloned).toEqual({ commonDir: path })
    expect(box.raw(path, 'symbolic-ref', 'HEAD')).toBe('refs/heads/trunk')
    expect(box.raw(path, 'symbolic-ref', 'refs/remotes/origin/HEAD')).toBe('refs/remotes/origin/trunk')
    expect(box.raw(path, 'for-each-ref', '--format=%(refname)').split('\n')).toEqual([
      'refs/remotes/origin/HEAD',
      'refs/remotes/origin/feature/x',
      'refs/remotes/origin/trunk',
      'refs/tags/v1',
    ])
    expect(box.raw(path, 'rev-parse', '--is-bare-repository')).toBe('true')
    expect(progress.at(-1)?.percent).toBe(100)
    const tip = upstream.commit('x', 'y')
    box.raw(path, 'fetch', '-q')
    expect(box.raw(path, 'rev-parse', 'origin/trunk')).toBe(tip)
  })

  it('clones an empty repository', async () => {
    const empty = box.bare('empty.git')
    const cloned = await cloneBare(box.git(), empty.path, box.path('clone.git'))
    expect(cloned.commonDir).toBe(box.path('clone.git'))
  })

  it('refuses a path that is taken and says when the remote is not there', async () => {
    const repo = box.repo()
    const git = box.git()
    await expect(cloneBare(git, repo.path, repo.path)).rejects.toMatchObject({ code: 'path-taken' })
    const clone = cloneBare(git, box.path('nowhere'), box.path('clone.git'))
    await expect(clone).rejects.toMatchObject({ code: 'remote-unreachable' })
  })

  it.each([
    'https://github.com/o/r.git',
    'ssh://git@github.com/o/r',
    'ssh://git@host:2222/o/r',
    'git@github.com:o/r.git',
    'git://example.org/r.git',
    'file:///srv/r.git',
    '/srv/r.git',
    'http://127.0.0.1:8080/r.git',
  ])('takes %s', (url) => {
    expect(validateRemoteUrl(url)).toBe(url)
  })

  it.each([
    '',
    '-u',
    '--upload-pack=evil',
    'ext::sh -c evil',
    'ext::evil',
    'fd::17',
    'https://user:secret@github.com/o/r',
    'https://ghp_secret@github.com/o/r',
    'ssh://-oProxyCommand=evil/x',
    'ssh://git:secret@host/x',
    '-oProxyCommand=evil:x',
    'git@-oProxyCommand=evil:x',
    'http://example.org/r.git',
    'https://host/a\nb',
    'https://host/a b',
    'relative/path',
    'javascript://x',
  ])('refuses %j', (url) => {
    expect(() => validateRemoteUrl(url)).toThrow(/can't clone this/)
  })
})

describe('credentials', () => {
  const secret = 'token-for-one-host-only'

  /** Demands basic authentication and writes down what it gets. */
  const demanding = async () => {
    const seen: string[] = []
    const server = createServer((request, response) => {
      seen.push(`${request.url} ${request.headers.authorization ?? '-'}`)
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const close = (): Promise<unknown> => new Promise((resolve) => server.close(resolve))
    return { seen, host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}/o/r.git`, close }
  }
  const basic = (user: string, password: string): string =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

  it('gives the token to its host, not on the command line, in no URL and in no message', async () => {
    const server = await demanding()
    const { repo } = withRemote()
    repo.git('remote', 'set-url', 'origin', server.url)
    const git = box.git({ login: async () => ({ host: server.host, secret }) })
    const fetched = await fetchRemote(git, repo, { remote: 'origin', refspecs })
    await server.close()
    expect(server.seen.some((line) => line.endsWith(basic('x-access-token', secret)))).toBe(true)
    expect(server.seen.join()).not.toContain(secret)
    expect(JSON.stringify(fetched)).not.toContain(secret)
    expect(readFileSync(join(box.home, '.coppice', 'askpass.sh'), 'utf8')).not.toContain(secret)
  })

  it('does not give it to any other host', async () => {
    const server = await demanding()
    const { repo } = withRemote()
    repo.git('remote', 'set-url', 'origin', server.url)
    for (const host of ['github.com', '127.0.0.1', `x${server.host}`]) {
      await fetchRemote(box.git({ login: async () => ({ host, secret }) }), repo, { remote: 'origin', refspecs })
    }
    // Nor to one that puts the right host where the user name or the path goes (localhost: over http, no other gets a token).
    repo.git('config', 'credential.useHttpPath', 'true')
    const users = ['localhost/', "localhost'", "localhost': ", 'https://localhost/', 'x@localhost/', "x@localhost'"]
    const disguised = [
      ...users.map((user) => server.url.replace('//', `//${encodeURIComponent(user)}@`)),
      ...['x@localhost', '@localhost/', 'x%40localhost', "'@localhost"].map((path) => `${server.url}/${path}`),
    ]
    for (const url of disguised) {
      repo.git('remote', 'set-url', 'origin', url)
      await fetchRemote(box.git({ login: async () => ({ host: 'localhost', secret }) }), repo, {
        remote: 'origin',
        refspecs,
      })
    }
    await server.close()
    expect(server.seen.length).toBeGreaterThan(0)
    const sent = server.seen.map((line) => Buffer.from(line.split(' Basic ')[1] ?? '', 'base64').toString())
    expect(sent.filter((login) => login.includes(secret))).toEqual([])
  })

  it.each([
    ["Password for 'https://github.com': ", true],
    ["Password for 'https://ada@github.com': ", true],
    ["Password for 'https://x-access-token@github.com/o/r.git': ", true],
    ["Password for 'http://github.com': ", false],
    ["Password for 'https://github.com'@evil.test': ", false],
    ["Password for 'https://github.com': '@evil.test': ", false],
    ["Password for 'https://github.com/@evil.test': ", false],
    ["Password for 'https://evil.test/x@github.com': ", false],
    ["Password for 'https://evil.test/x@github.com/r.git': ", false],
    ["Password for 'https://a@evil.test/x@github.com': ", false],
    ["Password for 'https://github.com:443': ", false],
    ["Password for 'https://github.com.evil.test': ", false],
    ["Password for 'https://evilgithub.com': ", false],
    ["Password for 'https://evil.github.com': ", false],
    ["Password for 'https://a'@github.com': ", false],
  ])('git 2.39 asks %s: answered %s', async (question, isAnswered) => {
    const token = { host: 'github.com', secret }
    const said = await withAskpass(
      { home: box.path('home'), token, next: undefined },
      async (variables) =>
        spawnSync(variables['GIT_ASKPASS'] ?? '', [question], { env: { PATH: '/usr/bin:/bin', ...variables } }).stdout,
    )
    expect(said.toString()).toBe(isAnswered ? `${secret}\n` : '')
  })

  it("runs the user's own credential helper, and not the one the repository names", async () => {
    const server = await demanding()
    const { repo } = withRemote()
    repo.git('remote', 'set-url', 'origin', server.url)
    const answer = 'case "$1" in get) cat >/dev/null; echo username=ada; echo password=fromhelper ;; esac'
    const own = markerProgram(box.path('own'), box.path('own-ran'), answer)
    const evil = markerProgram(box.path('evil'), box.path('evil-ran'), answer)
    box.raw(box.root, 'config', '--global', 'credential.helper', own)
    repo.git('config', 'credential.helper', evil)
    repo.git('config', `credential.http://${server.host}.helper`, evil)
    await fetchRemote(box.git(), repo, { remote: 'origin', refspecs })
    await server.close()
    expect(server.seen.some((line) => line.endsWith(basic('ada', 'fromhelper')))).toBe(true)
    expect(existsSync(box.path('own-ran'))).toBe(true)
    expect(existsSync(box.path('evil-ran'))).toBe(false)
  })
})
