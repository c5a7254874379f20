import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Sha } from '../../src/domain/names.ts'
import { fetchRemote } from '../../src/git/fetch.ts'
import { type Pushed, pushCommit } from '../../src/git/push.ts'
import { pushAddressOf } from '../../src/git/remote.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import type { GithubSettings } from '../../src/platforms/github/settings.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { type Access, certificate, type CodeHost, serveCodeHost } from '../helpers/https-git.ts'
import { makeSandbox, type Sandbox, type TestRepo } from '../helpers/repo.ts'
import { type GithubDouble, startDouble } from './github-double.ts'

/* Git against a GitHub Enterprise Server with a private repository, over real https, with an app's or a user's token. */

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})
const own = getCACertificates()
const refspecs = ['+refs/heads/*:refs/remotes/origin/*']

let box: Sandbox
let double: GithubDouble
let host: CodeHost
let repo: TestRepo
let now: number
let secrets: ReturnType<typeof createSecrets>
let access: (repository: string, secret: string) => Access
beforeEach(async () => {
  box = makeSandbox()
  now = Date.now()
  secrets = createSecrets()
  double = await startDouble()
  double.now = () => now
  access = (_repository, secret) => ((double.tokens.get(secret) ?? 0) > now ? 'write' : 'none')
  host = await serveCodeHost(box.root, { api: double.url, access: (...asked) => access(...asked) })
  setDefaultCACertificates([...own, certificate])
  writeFileSync(box.path('ca.pem'), certificate)
  box.raw(box.root, 'config', '--global', 'http.sslCAInfo', box.path('ca.pem'))
  repo = box.repo('project')
  box.bare('acme/app.git')
  repo.git('push', '-q', box.path('acme/app.git'), 'main')
  repo.git('remote', 'add', 'origin', `${host.url}/acme/app.git`)
})
afterEach(async () => {
  setDefaultCACertificates(own)
  await host.close()
  await double.close()
  box[Symbol.dispose]()
})

const asApp = { appId: '12345', privateKey }
const gitWith = (settings: GithubSettings, program?: string) => {
  const log = createLogger({ write: () => undefined, level: 'error', clock: () => now, redact: (text) => text })
  const forge = createGithubForge({ apiUrl: host.apiUrl, ...settings }, { log, clock: () => now, secrets })
  return box.git({ login: forge.login, redact: secrets.redact, program })
}
const fetchWith = (git: ReturnType<typeof gitWith>) => fetchRemote(git, repo, { remote: 'origin', refspecs })
const push = async (git: ReturnType<typeof gitWith>, commit: Sha): Promise<Pushed> => {
  const address = await pushAddressOf(git, repo, 'origin')
  if (address === undefined) throw new Error('the remote has no address')
  return pushCommit(git, repo, { address, remote: 'origin', commit, branch: 'issue-1' })
}
const minted = (): number => double.requests.filter((line) => line.endsWith('/access_tokens')).length

test("an app's installation token lets git fetch and push; one serves until shortly before it expires", async () => {
  double.installations.set('acme/app', 7)
  const git = gitWith(asApp)
  expect(double.requests).toEqual([])
  expect(await fetchWith(git)).toEqual({ outcome: 'fetched', problem: undefined })
  const commit = repo.commit('file', 'new\n')
  expect(await push(git, commit)).toEqual({ outcome: 'pushed', change: 'new' })
  expect(box.raw(box.path('acme/app.git'), 'rev-parse', 'issue-1')).toBe(commit)
  expect(minted()).toBe(1)
  now += 50 * 60_000
  expect(await fetchWith(git)).toMatchObject({ outcome: 'fetched' })
  expect(minted()).toBe(2)
  const [token = ''] = [...double.tokens.keys()]
  expect(secrets.redactKnown(`a ${token}`)).toBe('a [hidden]')
})

test('a token that expires in the middle of a push ends it, and the next one gets another', async () => {
  double.installations.set('acme/app', 7)
  const git = gitWith(asApp)
  const valid = access
  access = (repository, secret) => {
    const may = valid(repository, secret)
    // It was good for the first request of this push.
    if (may === 'write') now += 61 * 60_000
    return may
  }
  const commit = repo.commit('file', 'new\n')
  expect(await push(git, commit)).toMatchObject({ outcome: 'no-access' })
  access = valid
  expect(await push(git, commit)).toEqual({ outcome: 'pushed', change: 'new' })
  expect(minted()).toBe(2)
})

test('the token is in no argument, no variable and no file of git, and only a call over https asks for one', async () => {
  double.installations.set('acme/app', 7)
  const seen = box.path('seen')
  const program = box.path('git-that-tells')
  writeFileSync(program, `#!/bin/sh\n{ env; printf '%s\\n' "$@"; } >> '${seen}'\nexec git "$@"\n`)
  chmodSync(program, 0o755)
  const git = gitWith(asApp, program)
  expect(await fetchWith(git)).toMatchObject({ outcome: 'fetched' })
  const [token = ''] = [...double.tokens.keys()]
  expect(token).toMatch(/^ghs_/)
  expect(readFileSync(seen, 'utf8')).toContain('COPPICE_ASKPASS_HOST=localhost')
  for (const file of [seen, join(repo.commonDir, 'config'), box.path('home/.gitconfig')]) {
    expect(readFileSync(file, 'utf8')).not.toContain(token)
  }
  const asked = double.requests.length
  for (const url of [box.path('acme/app.git'), `ssh://git@${host.host.replace(/:.*/, '')}:9/acme/app.git`]) {
    repo.git('remote', 'set-url', 'origin', url)
    await fetchWith(gitWith(asApp))
  }
  expect(double.requests.length).toBe(asked)
})

test("a user's credential helper neither answers for the app nor keeps its token", async () => {
  double.installations.set('acme/app', 7)
  const kept = box.path('kept')
  const helper = box.path('helper')
  writeFileSync(
    helper,
    `#!/bin/sh\ncat >> '${kept}'; [ "$1" = get ] && printf 'username=ada\\npassword=old\\n'; true\n`,
  )
  chmodSync(helper, 0o755)
  box.raw(box.root, 'config', '--global', 'credential.helper', helper)
  expect(await fetchWith(gitWith(asApp))).toMatchObject({ outcome: 'fetched' })
  expect(() => readFileSync(kept)).toThrow(/ENOENT/)
  // Without an installation on the repository, the user's own login is all there is.
  double.installations.clear()
  await fetchWith(gitWith(asApp))
  expect(readFileSync(kept, 'utf8')).toContain(`host=${host.host}`)
})

test('a token from the settings reaches git too, and another host never gets it', async () => {
  access = (_repository, secret) => (secret === 'ghp_of_the_bot' ? 'read' : 'none')
  const git = gitWith({ token: 'ghp_of_the_bot' })
  expect(await fetchWith(git)).toMatchObject({ outcome: 'fetched' })
  expect(double.requests).toEqual([])
  const other = await serveCodeHost(box.root, { api: double.url, access: () => 'none' })
  repo.git('remote', 'set-url', 'origin', `${other.url}/acme/app.git`)
  expect(await fetchWith(git)).toMatchObject({ outcome: 'unreachable' })
  repo.git('remote', 'set-url', 'origin', `${host.url}/acme/app.git`)
  // Nor does one that ours redirects to, once it has the token.
  access = (_repository, secret) => (secret === 'ghp_of_the_bot' ? (other.url as `https://${string}`) : 'none')
  expect(await fetchWith(git)).toMatchObject({ outcome: 'unreachable' })
  expect(host.asked.at(-1)?.authorization).toBeDefined()
  expect(other.asked.map(({ authorization }) => authorization)).toEqual([undefined, undefined])
  await other.close()
  access = (_repository, secret) => (secret === 'ghp_of_the_bot' ? 'read' : 'none')
  const refused = await push(git, repo.commit('file', 'x'))
  expect(refused).toMatchObject({
    outcome: 'no-access',
    said: expect.stringContaining('denied to coppice[bot]') as string,
  })
})

test('if the app has no token to give, the failure says why; a token then takes its place', async () => {
  const why = "couldn't log in to GitHub: the GitHub App isn't installed on acme/app, or there is no such repository"
  expect(await fetchWith(gitWith(asApp))).toEqual({ outcome: 'unreachable', detail: why })
  double.trouble = () => ({ status: 502, body: { message: 'Bad Gateway' } })
  expect(await fetchWith(gitWith(asApp))).toMatchObject({ detail: expect.stringContaining('Bad Gateway') as string })
  double.trouble = undefined
  access = (_repository, secret) => (secret === 'ghp_of_the_bot' ? 'read' : 'none')
  expect(await fetchWith(gitWith({ ...asApp, token: 'ghp_of_the_bot' }))).toMatchObject({ outcome: 'fetched' })
})
