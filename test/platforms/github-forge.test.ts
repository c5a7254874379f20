import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Codebase } from '../../src/domain/environment.ts'
import { toSha } from '../../src/domain/names.ts'
import type { ForgeAnswer, ForgeQuestion } from '../../src/isolation/forge.ts'
import { gitHostOf } from '../../src/platforms/github/host.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { aCodebase } from '../helpers/store-values.ts'
import { type GithubDouble, startDouble } from './github-double.ts'

/* What GitHub merged, asked over its real protocol. Whatever isn't a clear yes is no proof. */

let double: GithubDouble
beforeEach(async () => {
  double = await startDouble()
})
afterEach(() => double.close())

const tip = toSha('a'.repeat(40))
const mergeCommit = toSha('b'.repeat(40))
const own = { full_name: 'acme/app' }
const pull = (more: object = {}) => ({
  number: 12,
  merged: true,
  merge_commit_sha: mergeCommit,
  head: { ref: 'issue-42', sha: tip, repo: own },
  base: { ref: 'main', repo: own },
  ...more,
})
const question: ForgeQuestion = { tip, branches: ['issue-42'], numbers: [] }
const app = aCodebase('app', { github: 'Acme/app', remoteUrl: '/srv/app.git' })

let now = 0
const ask = (
  questions: readonly ForgeQuestion[] = [question],
  codebase: Partial<Codebase> = {},
  apiUrl = double.url,
): Promise<ForgeAnswer> => asking(apiUrl).mergedPullRequests({ ...app, ...codebase }, questions)

const asking = (apiUrl = double.url) => {
  const clock = () => now
  const log = createLogger({ write: () => undefined, level: 'error', clock, redact: (text) => text })
  return createGithubForge({ token: 'ghp_x', apiUrl }, { log, clock, secrets: createSecrets() }, { timeoutMs: 1_000 })
}

const merged = { forge: 'GitHub', repository: 'Acme/app', number: 12, headSha: tip, mergeCommit, baseBranch: 'main' }

test('a merged pull request is found by its branch, by its number, and from a fork only by its number', async () => {
  double.pulls.set('acme/app#12', pull())
  expect(await ask()).toEqual({ merged: [merged] })
  expect(await ask([{ tip, branches: ['other'], numbers: [12] }])).toEqual({ merged: [merged] })
  const fork = { ref: 'issue-42', sha: tip, repo: { full_name: 'mallory/app' } }
  double.pulls.set('acme/app#12', pull({ head: fork }))
  expect(await ask()).toEqual({ merged: [] })
  // Number 7 is an issue: an error beside the answers.
  expect(await ask([{ tip, branches: [], numbers: [7, 12] }])).toEqual({ merged: [merged] })
})

test('the remote is on the GitHub that is asked', async () => {
  double.pulls.set('acme/app#12', pull())
  for (const remoteUrl of ['ssh://git@127.0.0.1:2222/acme/app.git', 'git@127.0.0.1:acme/app', 'file:///srv/app.git']) {
    expect(await ask([question], { remoteUrl })).toEqual({ merged: [merged] })
  }
  const hosts = {
    'https://api.github.com': 'github.com',
    'https://api.acme.ghe.com': 'acme.ghe.com',
    'https://github.example.com/api/v3': 'github.example.com',
    'https://api.example.com/api/v3': 'api.example.com',
    'not a URL': undefined,
  }
  expect(Object.keys(hosts).map(gitHostOf)).toEqual(Object.values(hosts))
})

describe('is no proof:', () => {
  const cases: Record<string, () => Promise<ForgeAnswer>> = {
    'a head that is another commit': () => {
      double.pulls.set('acme/app#12', pull({ head: { ref: 'issue-42', sha: mergeCommit, repo: own } }))
      return ask()
    },
    'a pull request that was closed without a merge': () => {
      double.pulls.set('acme/app#12', pull({ merged: false }))
      return ask([{ ...question, numbers: [12] }])
    },
    'one that was merged without saying into which commit': () => {
      double.pulls.set('acme/app#12', { ...pull(), merge_commit_sha: undefined })
      return ask()
    },
    'the same number in another repository': () => {
      double.pulls.set('other/app#12', pull())
      return ask([{ ...question, numbers: [12] }])
    },
    'one that was merged into another repository': () => {
      double.pulls.set('acme/app#12', pull({ base: { ref: 'main', repo: { full_name: 'other/app' } } }))
      return ask()
    },
    'a repository that has another name now': () => {
      const node = {
        number: 12,
        merged: true,
        headRefOid: tip,
        headRepository: { nameWithOwner: 'acme/app' },
        baseRefName: 'main',
        baseRepository: { nameWithOwner: 'acme/app' },
        mergeCommit: { oid: mergeCommit },
      }
      const repository = { nameWithOwner: 'acme/renamed', q0: { nodes: [node] } }
      double.trouble = () => ({ status: 200, body: { data: { repository } } })
      return ask()
    },
    'a deleted fork’s branch of the same name': () => {
      double.pulls.set('acme/app#12', pull({ head: { ref: 'issue-42', sha: tip, repo: null } }))
      return ask()
    },
  }
  test.each(Object.entries(cases))('%s', async (_, arrange) => {
    expect(await arrange()).toEqual({ merged: [] })
  })

  const elsewhere = [
    'https://github.example.com/acme/app.git',
    'https://github.com/acme/app.git',
    'git@github.com:acme/app.git',
    'ssh://git@ghe.example.com/acme/app',
  ]
  test.each(elsewhere)('a repository of that name on another host: %s', async (remoteUrl) => {
    double.pulls.set('acme/app#12', pull())
    expect(await ask([question], { remoteUrl })).toEqual({ merged: [] })
    expect(double.requests).toEqual([])
  })

  const troubles: Record<string, [object | 'lost' | 'silent', string | RegExp]> = {
    'no answer': ['silent', /timeout|abort/i],
    'a broken connection': ['lost', /./],
    'an outage': [{ status: 502, body: { message: 'Bad Gateway' } }, /Bad Gateway/],
    'a token without access': [{ status: 401, body: { message: 'Bad credentials' } }, 'Bad credentials'],
    'a repository that the token cannot see': [
      {
        status: 200,
        body: { data: { repository: null }, errors: [{ type: 'NOT_FOUND', message: 'Could not resolve' }] },
      },
      'Could not resolve',
    ],
    'an answer without the pull requests': [
      { status: 200, body: { data: { repository: { nameWithOwner: 'acme/app' } } } },
      "GitHub's answer isn't what was asked for",
    ],
    'half an answer': [
      { status: 200, body: { data: { repository: null }, errors: [{ message: 'Something went wrong' }] } },
      'Something went wrong',
    ],
  }
  test.each(Object.entries(troubles))('%s', async (_, [trouble, message]) => {
    double.pulls.set('acme/app#12', pull())
    double.trouble = () => trouble as never
    const problem = { forge: 'GitHub', message: expect.stringMatching(message) as string }
    expect(await ask()).toEqual({ merged: [], problem })
  })
})

test('a rate limit ends the questions, and GitHub is left alone until the time it names', async () => {
  const forge = asking()
  const many = Array.from({ length: 60 }, (_, i) => ({ ...question, branches: [`b${i}`] }))
  now = 1_000_000
  double.pulls.set('acme/app#12', pull())
  const limited = { type: 'RATE_LIMITED', message: 'API rate limit exceeded' }
  double.trouble = () => ({ status: 200, body: { errors: [limited] }, headers: { 'x-ratelimit-reset': '1300' } })
  expect(await forge.mergedPullRequests(app, many)).toMatchObject({ problem: { message: limited.message } })
  expect(double.requests).toHaveLength(1)
  double.trouble = undefined
  now = 1_299_000
  expect(await forge.mergedPullRequests(app, [question])).toMatchObject({ merged: [], problem: {} })
  expect(double.requests).toHaveLength(1)
  now = 1_300_001
  expect(await forge.mergedPullRequests(app, [question])).toEqual({ merged: [merged] })
})

test('as many as fit are asked in one request, and what was answered before a failure counts', async () => {
  const shaOf = (n: number) => toSha(n.toString(16).padStart(40, '0'))
  const questions = Array.from({ length: 120 }, (_, n) => {
    const head = { ref: `issue-${n}`, sha: shaOf(n), repo: own }
    double.pulls.set(`acme/app#${n}`, pull({ number: n, head }))
    return { tip: shaOf(n), branches: [`issue-${n}`], numbers: [] }
  })
  expect((await ask(questions)).merged).toHaveLength(120)
  expect(double.requests).toHaveLength(3)
  expect((await ask(questions.slice(0, 25))).merged).toHaveLength(25)
  expect(double.requests).toHaveLength(4)
  expect(await ask([])).toEqual({ merged: [] })
  expect(await ask([question], { github: undefined })).toEqual({ merged: [] })
  expect(double.requests).toHaveLength(4)
  let requests = 0
  double.trouble = () => ((requests += 1) === 2 ? { status: 502 } : undefined)
  const answer = await ask(questions)
  expect([answer.merged.length, answer.problem?.forge, requests]).toEqual([50, 'GitHub', 2])
})

describe('beside a question that GitHub fails to answer, the others count:', () => {
  const problem = { forge: 'GitHub', message: 'Something went wrong' }
  const branch = (name: string): ForgeQuestion => ({ ...question, branches: [name] })
  const number = (n: number): ForgeQuestion => ({ tip, branches: [], numbers: [n] })

  test('a number, which is null in the answer', async () => {
    double.pulls.set('acme/app#12', pull())
    double.failing.add(13)
    expect(await ask([question, number(13), number(7)])).toEqual({ merged: [merged], problem })
    expect(double.requests).toHaveLength(1)
  })

  test('a branch, which leaves no answer at all: the rest is asked again, once', async () => {
    double.pulls.set('acme/app#12', pull())
    double.failing.add('bad').add(13)
    expect(await ask([branch('bad'), question, number(13)])).toEqual({ merged: [merged], problem })
    expect(double.requests).toHaveLength(2)
    double.failing.add('worse')
    expect(await ask([branch('bad'), question, branch('worse')])).toEqual({ merged: [], problem })
    expect(double.requests).toHaveLength(4)
    expect(await ask([branch('bad')])).toEqual({ merged: [], problem })
    expect(double.requests).toHaveLength(5)
  })

  test('and so do those of the other requests', async () => {
    double.pulls.set('acme/app#12', pull())
    double.failing.add(1)
    const many = Array.from({ length: 60 }, (_, i) => number(i + 1))
    expect(await ask(many)).toEqual({ merged: [merged], problem })
    expect(double.requests).toHaveLength(2)
  })

  test('but nothing of a field that went wrong in part', async () => {
    const other = toSha('c'.repeat(40))
    const node = {
      number: 12,
      merged: true,
      headRefOid: tip,
      headRepository: { nameWithOwner: 'acme/app' },
      baseRefName: 'main',
      baseRepository: { nameWithOwner: 'acme/app' },
      mergeCommit: { oid: mergeCommit },
    }
    const repository = {
      nameWithOwner: 'acme/app',
      q0: { nodes: [node, null] },
      q1: { nodes: [{ ...node, headRefOid: other }] },
    }
    const errors = [{ path: ['repository', 'q0', 'nodes', 1], message: 'Something went wrong' }]
    double.trouble = () => ({ status: 200, body: { data: { repository }, errors } })
    const both = [question, { tip: other, branches: ['other'], numbers: [] }]
    const answered = { merged: [{ ...merged, headSha: other }], problem }
    expect(await ask(both)).toEqual(answered)
    // Errors without a path: what is null has no answer.
    const body = { data: { repository: { ...repository, q0: null } }, errors: [{ message: 'Something went wrong' }] }
    double.trouble = () => ({ status: 200, body })
    expect(await ask(both)).toEqual(answered)
    expect(double.requests).toHaveLength(2)
  })

  test('but nothing beside a rate limit, which ends the questions', async () => {
    const errors = [{ type: 'RATE_LIMITED', path: ['repository', 'q0'], message: 'API rate limit exceeded' }]
    const repository = { nameWithOwner: 'acme/app', q0: null, q1: { nodes: [] } }
    for (const data of [{ repository }, { repository: null }]) {
      double.trouble = () => ({ status: 200, body: { data, errors } })
      expect(await ask([question, branch('other')])).toMatchObject({ problem: { message: errors[0]?.message } })
    }
    expect(double.requests).toHaveLength(2)
    const forge = asking()
    await forge.mergedPullRequests(app, [question, branch('other')])
    await forge.mergedPullRequests(app, [question])
    expect(double.requests).toHaveLength(3)
  })
})

test('a number that no pull request can have is not asked for', async () => {
  double.pulls.set('acme/app#12', pull())
  expect(await ask([{ tip, branches: ['issue-42'], numbers: [2 ** 31, 9_999_999_999] }])).toEqual({ merged: [merged] })
  expect(await ask([{ tip, branches: [], numbers: [2 ** 31 - 1, 12] }])).toEqual({ merged: [merged] })
  expect(await ask([{ tip, branches: [], numbers: [2 ** 31] }])).toEqual({ merged: [] })
  expect(double.requests).toHaveLength(2)
})
