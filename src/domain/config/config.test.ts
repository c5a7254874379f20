import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultRepoConfig, parseRepoConfig } from './repository.ts'
import { defaultSettings } from './settings.ts'
import { homeDirectory, resolveSettings, worktreeBase, type Env } from './config.ts'
import { AppError } from '../errors.ts'

const homeFile = '/home/ada/.coppice/config.yaml'
const settings = (homeText?: string, env: Env = {}) =>
  resolveSettings({ homeFile, env: { HOME: '/home/ada', ...env }, ...(homeText === undefined ? {} : { homeText }) })
const repo = (text: string) => parseRepoConfig(text, '.coppice/config.yaml')

const failure = async (promise: Promise<unknown>): Promise<AppError> => {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof AppError)) throw new Error(`expected an AppError, got ${String(error)}`)
  expect(error.code).toBe('config-invalid')
  return error
}

describe('settings of the home', () => {
  test('are the documented defaults without a file or a variable', async () => {
    expect(await settings()).toEqual(defaultSettings)
    expect(defaultSettings).toMatchObject({
      spares: 1,
      worktreesPerCodebase: 25,
      concurrentConversations: 10,
      runMinutes: 120,
      staleDays: 14,
      cleanupIntervalHours: 6,
      restoreDays: 30,
      restoreIgnoredBytes: 52_428_800,
      fetchFreshSeconds: 60,
      holdMergedHours: 1,
    })
    expect(defaultSettings.regenerable).toEqual(expect.arrayContaining(['node_modules', 'target', '.venv']))
  })

  test.each(['', '\n# nothing yet\n', 'cleanup:\n', 'cleanup:\n  staleDays:\n  # 3\n', '---\n'])(
    'are the defaults with a file that says nothing: %j',
    async (text) => {
      expect(await settings(text)).toEqual(defaultSettings)
    },
  )

  test.each([
    ['database: { url: "postgres://u:p@h/db" }', { databaseUrl: 'postgres://u:p@h/db' }],
    ['worktrees: { base: /srv/trees/ }', { worktreesBase: '/srv/trees' }],
    ['worktrees: { base: "~/trees" }', { worktreesBase: '/home/ada/trees' }],
    ['worktrees: { spares: 0, fetchSeconds: 0 }', { spares: 0, fetchFreshSeconds: 0 }],
    [
      'limits: { worktreesPerCodebase: 3, concurrentConversations: 2, runMinutes: 0.5 }',
      { worktreesPerCodebase: 3, concurrentConversations: 2, runMinutes: 0.5 },
    ],
    [
      'cleanup: { staleDays: 0, intervalHours: 0.5, restoreDays: 7 }',
      { staleDays: 0, cleanupIntervalHours: 0.5, restoreDays: 7 },
    ],
    ['cleanup: { restoreIgnoredMegabytes: 2 }', { restoreIgnoredBytes: 2_097_152 }],
    ['cleanup: { holdMergedHours: 0 }', { holdMergedHours: 0 }],
    ['cleanup: { regenerable: [dist, node_modules/] }', { regenerable: ['dist', 'node_modules'] }],
    [
      'agent: { default: codex, command: "my-agent --fast" }',
      { agentDefault: 'codex', agentCommand: 'my-agent --fast' },
    ],
    ['agent:\n  claude:\n    permissionMode: plan\n', { claudePermissionMode: 'plan' }],
    ['agent: { claude: }', {}],
    ['platforms: { slack: { anything: [1, 2] } }', {}],
  ])('are read from the file: %s', async (text, expected) => {
    expect(await settings(text)).toEqual({ ...defaultSettings, ...expected })
  })

  test.each([
    ['COPPICE_DATABASE_URL', 'postgresql://h/db', { databaseUrl: 'postgresql://h/db' }],
    ['WORKTREE_BASE', '~/elsewhere', { worktreesBase: '/home/ada/elsewhere' }],
    ['MAX_WORKTREES_PER_CODEBASE', '3', { worktreesPerCodebase: 3 }],
    ['MAX_CONCURRENT_CONVERSATIONS', ' 4 ', { concurrentConversations: 4 }],
    ['STALE_THRESHOLD_DAYS', '0', { staleDays: 0 }],
    ['CLEANUP_INTERVAL_HOURS', '1.5', { cleanupIntervalHours: 1.5 }],
    ['COPPICE_AGENT', 'demo', { agentDefault: 'demo' }],
    ['COPPICE_AGENT_COMMAND', 'cat', { agentCommand: 'cat' }],
  ])('are read from the variable %s', async (name, value, expected) => {
    expect(await settings(undefined, { [name]: value })).toEqual({ ...defaultSettings, ...expected })
  })

  test('a variable wins over the file, and an empty one is not set', async () => {
    const file = 'cleanup: { staleDays: 3 }'
    expect((await settings(file, { STALE_THRESHOLD_DAYS: '9' })).staleDays).toBe(9)
    expect((await settings(file, { STALE_THRESHOLD_DAYS: '' })).staleDays).toBe(3)
  })

  test('the home has no place for a token', async () => {
    await failure(settings('github: { token: ghp_x }'))
  })
})

describe('a mistake in the home config names the file, the line, the key and what would be right', () => {
  test.each([
    ['cleanup:\n  stalDays: 3\n', 'line 2: unknown setting "cleanup.stalDays"', 'did you mean "cleanup.staleDays"?'],
    ['cleanup:\n  stale_days: 3\n', 'line 2: unknown setting "cleanup.stale_days"', '"cleanup.staleDays"'],
    ['worktrees:\n  staleDays: 3\n', 'line 2: unknown setting "worktrees.staleDays"', '"cleanup.staleDays"'],
    ['staleDays: 3\n', 'line 1: unknown setting "staleDays"', '"cleanup.staleDays"'],
    ['clean:\n  staleDays: 3\n', 'unknown setting "clean"', 'cleanup'],
    ['cleanup:\n  zzzzzzzz: 3\n', 'unknown setting "cleanup.zzzzzzzz"', 'valid settings are cleanup.staleDays'],
    ['cleanup:\n  holdDays: 3\n', 'line 2: unknown setting "cleanup.holdDays"', 'cleanup.staleDays'],
    ['nonsense: 3\n', 'unknown setting "nonsense"', 'database.url'],
    ['__proto__:\n  a: 3\n', 'unknown setting "__proto__"', 'database.url'],
    ['cleanup:\n  constructor: 3\n', 'unknown setting "cleanup.constructor"', 'cleanup.staleDays'],
    ['cleanup:\n  # why\n  staleDays: soon\n', 'line 3: cleanup.staleDays is "soon"', 'a number from 0 to 36500'],
    ['cleanup:\n  staleDays: -1\n', 'line 2: cleanup.staleDays is -1', 'a number from 0'],
    ['cleanup:\n  staleDays: "3"\n', 'cleanup.staleDays is "3"', 'a number'],
    ['cleanup:\n  staleDays: .nan\n', 'cleanup.staleDays is', 'a number'],
    ['cleanup:\n  restoreDays: 0\n', 'cleanup.restoreDays is 0', 'from 1 to'],
    ['cleanup:\n  intervalHours: 600\n', 'cleanup.intervalHours is 600', 'to 500'],
    ['cleanup:\n  intervalHours: 0\n', 'cleanup.intervalHours is 0', 'from 0.01'],
    ['cleanup:\n  regenerable: [a/b]\n', 'cleanup.regenerable is ["a/b"]', 'without "/"'],
    ['limits:\n  worktreesPerCodebase: 2.5\n', 'limits.worktreesPerCodebase is 2.5', 'a whole number from 1'],
    ['limits:\n  worktreesPerCodebase: 0\n', 'limits.worktreesPerCodebase is 0', 'a whole number from 1'],
    ['limits:\n  runMinutes: 0\n', 'limits.runMinutes is 0', 'a number from 0.01 to 30000, such as 120'],
    ['limits:\n  runMinutes: 40000\n', 'limits.runMinutes is 40000', 'a number from 0.01 to 30000'],
    ['worktrees:\n  base: trees\n', 'worktrees.base is "trees"', 'an absolute path'],
    ['worktrees:\n  base: ~ada/trees\n', 'worktrees.base is "~ada/trees"', 'starts with ~/'],
    ['agent:\n  default: ""\n', 'agent.default is ""', 'non-empty'],
    ['agent:\n  claude: on\n', 'line 2: "agent.claude" must be a section', 'valid keys are agent.claude.command'],
    ['agent:\n  claude:\n    mode: plan\n', 'line 3: unknown setting "agent.claude.mode"', 'agent.claude.command'],
    ['cleanup.staleDays: 3\n', 'line 1: "cleanup.staleDays" must be nested', '"cleanup: { staleDays: … }"'],
    [
      'agent.claude.permissionMode: plan\n',
      'line 1: "agent.claude.permissionMode" must be nested, without dots',
      'write it as "agent: { claude: { permissionMode: … } }", or as indented lines',
    ],
    [
      'agent:\n  claude.permissionMode: plan\n',
      'line 2: "agent.claude.permissionMode" must be nested, without dots',
      'write it as "agent: { claude: { permissionMode: … } }", or as indented lines',
    ],
    ['agent.claude:\n  command: x\n', '"agent.claude" must be nested', '"agent: { claude: … }"'],
    ['agent:\n  claude.mode: x\n', 'line 2: unknown setting "agent.claude.mode"', 'agent.claude.command'],
    ['agent: { acp: { acp: { command: [x] } } }\n', 'agent.acp is', "can't be acp, claude, codex, command or demo"],
    ['cleanup: 3\n', 'line 1: "cleanup" must be a section', 'cleanup.staleDays'],
    ['- cleanup\n', 'the file must be a section', 'key: value'],
    ['just text', 'the file must be a section', 'key: value'],
  ])('%j', async (text, message, remedy) => {
    const error = await failure(settings(text))
    expect(error.message).toContain(homeFile)
    expect(error.message).toContain(message)
    expect(error.remedy).toContain(remedy)
  })

  test.each([
    ['STALE_THRESHOLD_DAYS', 'soon'],
    ['STALE_THRESHOLD_DAYS', '-1'],
    ['STALE_THRESHOLD_DAYS', '0x10'],
    ['STALE_THRESHOLD_DAYS', '1e2'],
    ['STALE_THRESHOLD_DAYS', 'Infinity'],
    ['MAX_WORKTREES_PER_CODEBASE', '0'],
    ['MAX_WORKTREES_PER_CODEBASE', '2.5'],
    ['WORKTREE_BASE', '../trees'],
  ])('the variable %s=%s is refused by its name', async (name, value) => {
    const error = await failure(settings(undefined, { [name]: value }))
    expect(error.message).toContain(
      `${name} is ${JSON.stringify(Number.isFinite(Number(value)) && /^\d/.test(value) && !/[xe]/.test(value) ? Number(value) : value)}`,
    )
    expect(error.remedy).toContain(`${name} must be`)
  })

  test('a database URL is never shown, not even a wrong one', async () => {
    for (const promise of [
      settings('database: { url: "mysql://u:secret@h/db" }'),
      settings(undefined, { COPPICE_DATABASE_URL: 'mysql://u:secret@h/db' }),
    ]) {
      const error = await failure(promise)
      expect(`${error.message} ${JSON.stringify(error.remedy)}`).not.toContain('secret')
    }
  })

  test.each([
    ['cleanup:\n  staleDays: [3\n', /line [23]: /],
    ['cleanup:\n\tstaleDays: 3\n', /line 2: /],
    ['a: 1\na: 2\n', /line 2: /],
    ['a: 1\n---\nb: 2\n', /line/],
  ])('YAML that is broken names its line: %j', async (text, line) => {
    const error = await failure(settings(text))
    expect(error.message).toMatch(line)
    expect(error.message).toContain(homeFile)
  })

  test('hostile YAML (aliases that multiply, thousands of brackets) is a clear error and not a hang', async () => {
    const laughs = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefghi'.split('').map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefgh'[i]}`).join(',')}]`),
    ]
    await failure(settings(laughs.join('\n')))
    await failure(settings(`cleanup: ${'['.repeat(20_000)}`))
  })

  test('whatever the text is, the answer is settings or a config-invalid', async () => {
    const piece = fc.constantFrom(
      'cleanup',
      'worktrees',
      ':',
      ' ',
      '\n',
      '  ',
      'staleDays',
      '3',
      '-',
      '[',
      '}',
      '&a',
      '*a',
      '"',
      '!!x',
      '|',
    )
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 12 }), async (pieces) => {
        const outcome = await settings(pieces.join('')).then(
          () => 'config-invalid',
          (error: unknown) => (error instanceof AppError ? error.code : error),
        )
        expect(outcome).toBe('config-invalid')
      }),
    )
  })
})

describe("the repository's config", () => {
  test('is all defaults when it says nothing', async () => {
    expect(await repo('')).toEqual(defaultRepoConfig)
    expect(await repo('worktree:\n')).toEqual(defaultRepoConfig)
    expect(defaultRepoConfig).toMatchObject({ submodules: true, allowForks: false, copy: [] })
  })

  test('is read in full', async () => {
    const text = `
worktree:
  base: develop
  copy: [.env, ./config/*.local.json, "packages/**/.env"]
  link: node_modules/
  keep: [notes.txt]
  setup:
    - npm ci
    - |
      echo one
      echo two
  teardown: docker compose down
  submodules: false
  ports: [PORT, DB_PORT]
  allowForks: true
pullRequests:
  open: auto
landing: { strategy: rebase, gates: [npm ci, npm test], timeout: 90s, batch: 8, retries: 1, returns: 0 }
`
    expect(await repo(text)).toEqual({
      base: 'develop',
      copy: ['.env', 'config/*.local.json', 'packages/**/.env'],
      link: ['node_modules'],
      keep: ['notes.txt'],
      setup: ['npm ci', 'echo one\necho two\n'],
      teardown: ['docker compose down'],
      submodules: false,
      ports: ['PORT', 'DB_PORT'],
      allowForks: true,
      openPullRequests: 'auto',
      landingStrategy: 'rebase',
      landingGates: ['npm ci', 'npm test'],
      landingTimeoutMs: 90_000,
      landingBatch: 8,
      landingRetries: 1,
      landingReturns: 0,
      configuresLanding: true,
    })
  })

  const escapes = [
    '/etc/passwd',
    '..',
    '../x',
    'a/../../x',
    'a/..',
    '~/x',
    '~',
    '.',
    './',
    '',
    ' \n',
    'a//b',
    'a/./b',
    '.git',
    '.git/hooks/post-checkout',
    'sub/.git/config',
    '.GIT/hooks',
    './.git',
    'C:\\x',
    '..\\x',
    'a\0b',
    'a\nb',
  ]
  test.each(escapes)('a path that leads out of the tree or into .git is refused: %j', async (path) => {
    for (const key of ['copy', 'link', 'keep']) {
      const error = await failure(repo(JSON.stringify({ worktree: { [key]: ['ok', path] } })))
      expect(error.message).toContain(`worktree.${key}`)
      expect(error.message).toContain('.coppice/config.yaml')
    }
  })

  test.each(['.{.,x}/secret', '{..,a}/x', '.{git,}/config', '@(..)/x', '!(x)', '!.env'])(
    'a glob that could spell a way out is refused: %j',
    async (glob) => {
      await failure(repo(JSON.stringify({ worktree: { copy: glob } })))
    },
  )

  test('too many globs, or one that is too long, are refused with the limit', async () => {
    const many = Array.from({ length: 101 }, (_, i) => `file-${i}`)
    for (const key of ['copy', 'keep']) {
      const long = await failure(repo(JSON.stringify({ worktree: { [key]: ['*a'.repeat(101)] } })))
      expect(long.message).toMatch(new RegExp(`^\\.coppice/config.yaml.*worktree.${key}`))
      expect(long.remedy).toContain('at most 200 characters')
      const error = await failure(repo(JSON.stringify({ worktree: { [key]: many } })))
      expect(error.message).toMatch(new RegExp(`^\\.coppice/config.yaml.*worktree.${key}`))
      expect(error.remedy).toContain('at most 100')
    }
  })

  test('a link has no wildcard', async () => {
    expect((await failure(repo('worktree: { link: "cache/*" }'))).remedy).toContain('no wildcard')
  })

  test.each([
    '1PORT',
    'MY PORT',
    'PORT=3',
    '',
    'PATH',
    'HOME',
    'GIT_DIR',
    'LD_PRELOAD',
    'NODE_OPTIONS',
    'COPPICE_HOME',
    'path',
  ])('a port is not leased into the variable %j', async (name) => {
    await failure(repo(JSON.stringify({ worktree: { ports: [name] } })))
  })

  test.each([
    ['worktree: { setup: [] , set_up: x }', 'worktree.setup'],
    ['worktrees: { copy: x }', 'worktree'],
    ['setup: npm ci', 'worktree.setup'],
  ])('a misspelt key is told the right one: %s', async (text, guess) => {
    expect((await failure(repo(text))).remedy).toContain(`did you mean "${guess}"?`)
  })

  test.each([
    'setup: [3]',
    'setup: ""',
    'setup: [" "]',
    'submodules: "yes"',
    'base: "-x"',
    'base: "a..b"',
    'copy: { a: b }',
    'ports: 3000',
  ])('a bad value is refused: %s', async (line) => {
    await failure(repo(`worktree: { ${line} }`))
  })

  test.each([
    ['strategy: fast-forward', 'squash, merge, rebase'],
    ['gates: [""]', 'a shell command'],
    ['timeout: 20', 'such as 20m'],
    ['batch: 0', 'a whole number from 1 to 50'],
    ['retries: yes', 'a whole number from 0 to 5'],
    ['returns: -1', 'a whole number from 0 to 20'],
    ['gate: npm test', 'did you mean "landing.gates"?'],
  ])('a bad value for landing is refused: %s', async (line, right) => {
    const error = await failure(repo(`landing: { ${line} }`))
    expect(error.message).toMatch(/^\.coppice\/config\.yaml.*landing\./)
    expect(error.remedy).toContain(right)
  })
})

describe('where the home is', () => {
  const nowhere = () => false
  test.each([
    [{ HOME: '/home/ada' }, nowhere, '/home/ada/.coppice'],
    [{ HOME: '/home/ada/' }, nowhere, '/home/ada/.coppice'],
    [{ HOME: '/root' }, (path: string) => path === '/.dockerenv', '/.coppice'],
    [{ HOME: '/root' }, (path: string) => path === '/run/.containerenv', '/.coppice'],
    [{ HOME: '/home/ada', COPPICE_HOME: '~/c' }, () => true, '/home/ada/c'],
    [{ HOME: '/home/ada', COPPICE_HOME: '~' }, nowhere, '/home/ada'],
    [{ COPPICE_HOME: '/srv/coppice//x/' }, () => true, '/srv/coppice/x'],
    [{ HOME: '/home/ada', COPPICE_HOME: '' }, nowhere, '/home/ada/.coppice'],
  ])('%j', (env, exists, expected) => {
    expect(homeDirectory(env, exists)).toBe(expected)
  })

  test.each([{ COPPICE_HOME: 'relative' }, { COPPICE_HOME: '~bob/x' }, { COPPICE_HOME: '~/x' }, {}])(
    'cannot be told from %j, and says what to do',
    (env) => {
      expect(() => homeDirectory(env, nowhere)).toThrow(
        expect.objectContaining({ code: 'config-invalid', remedy: expect.stringContaining('COPPICE_HOME') }),
      )
    },
  )

  test('worktrees lie in it unless the base is set', async () => {
    expect(worktreeBase(await settings(), '/h')).toBe('/h/worktrees')
    expect(worktreeBase(await settings(undefined, { WORKTREE_BASE: '/srv/t' }), '/h')).toBe('/srv/t')
  })
})
