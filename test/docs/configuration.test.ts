import { expect, test } from 'vitest'
import { defaultRepoConfig, repoKey, repoTable } from '../../src/domain/config/repository.ts'
import { poolTable } from '../../src/domain/config/fleet.ts'
import { hookTable } from '../../src/domain/config/hooks.ts'
import type { Rule } from '../../src/domain/config/rules.ts'
import { defaultSettings, type Settings, settingTable } from '../../src/domain/config/settings.ts'
import { anyDescriptor, remoteNames } from '../../src/platforms/remote.ts'

type Line = {
  readonly key?: string
  readonly variable?: string
  readonly rule: Rule<unknown>
  readonly about: string
  readonly default?: unknown
}

test('docs/configuration.md lists every setting as the tables have it (update: npm test -- test/docs -u)', async () => {
  await expect(page()).toMatchFileSnapshot('../../docs/configuration.md')
})

const ofPlatforms = new Set(
  remoteNames.flatMap((name) => Object.values<Line>(anyDescriptor(name).settings).map(({ variable }) => variable)),
)

const alsoFor = ({ variable }: Line): string[] =>
  Object.values<Line>(settingTable).flatMap((line) =>
    line.variable === variable && variable !== undefined ? [line.about] : [],
  )

const page = (): string => `# Configuration

Coppice needs no configuration. It reads settings from three places; an environment variable overrides the file:

- environment variables
- \`config.yaml\` in Coppice's home directory, for everything on this machine
- \`.coppice/config.yaml\` in a repository, for that repository

In a file, nest a name at each dot: \`agent.claude.command\` is \`command:\` under \`claude:\` under \`agent:\`. An unknown key or an invalid value is an error that names the file, the line and the expected value. The server reads its settings once, when it starts.

\`COPPICE_HOME\` is Coppice's home directory: \`~/.coppice\` by default, \`/.coppice\` in a container. \`--home\` overrides it. \`COPPICE_DEBUG=1\` is the same as \`--verbose\`. \`NO_COLOR=1\` turns colors off.

## Machine settings

\`\`\`yaml
# ~/.coppice/config.yaml
limits:
  worktreesPerCodebase: 40
agent:
  default: claude
\`\`\`

${list(
  Object.entries<Line>(settingTable)
    // A variable that a platform uses too is listed there, with its key.
    .filter(([, { variable }]) => variable === undefined || !ofPlatforms.has(variable))
    .map(([name, line]) => ({ ...line, default: homeDefault(name as keyof Settings) })),
)}

### Pools

Each pool is a section below \`fleet.pools\`, under a name of your choice ([the fleet](fleet.md)):

\`\`\`yaml
# ~/.coppice/config.yaml
fleet:
  pools:
    workers:
      agent: claude
      max: 8
      pull: true
\`\`\`

${list(
  Object.entries<Line & { readonly key?: string }>(poolTable).map(([name, line]) => ({
    ...line,
    key: line.key ?? name,
    default: poolDefault(name, line.default),
  })),
)}

### Hooks

A hook runs a command, calls a webhook or sends a message when something happens in the fleet ([events and hooks](events.md)):

\`\`\`yaml
# ~/.coppice/config.yaml
hooks:
  - on: [needs-you, landed]
    command: notify-send Coppice "$COPPICE_EVENT_TEXT"
\`\`\`

${list(
  Object.entries<Line>(hookTable).map(([key, line]) => ({
    ...line,
    key,
    default: key === 'timeout' ? '30s' : line.default,
  })),
)}

## Repository settings

Read from the commit that new work starts from, never from the work's own branch.

\`\`\`yaml
# .coppice/config.yaml
worktree:
  copy: [.env, 'config/*.local.json']
  setup: npm ci
  ports: [PORT]
landing:
  gates: [npm ci, npm test]
  batch: 8
\`\`\`

${list(
  Object.entries<Line & { readonly section?: string }>(repoTable).map(([name, line]) => ({
    ...line,
    key: repoKey(name, line),
    default: name === 'landingTimeoutMs' ? '20m' : defaultRepoConfig[name as keyof typeof defaultRepoConfig],
  })),
)}

## Platforms

Platforms are off until you set them up. \`coppice platforms setup <name>\` shows the steps and verifies your credentials.
${remoteNames
  .map(
    (name) => `
### ${name}

${list(Object.entries<Line>(anyDescriptor(name).settings).map(([key, line]) => ({ ...line, key: `platforms.${name}.${key}`, about: [line.about, ...alsoFor(line)].join(' ') })))}
`,
  )
  .join('')}`

/** In the unit of the key, where the program counts in another. */
const homeDefault = (name: keyof Settings): unknown =>
  name === 'pools'
    ? undefined
    : name === 'restoreIgnoredBytes'
      ? defaultSettings[name] / 1024 / 1024
      : defaultSettings[name]

const poolDefault = (name: string, value: unknown): unknown => {
  if (name === 'names') return 'trees'
  return name === 'drainTimeoutMs' ? '5m' : value
}

const list = (lines: readonly Line[]): string => lines.map(entry).join('\n')

const entry = ({ key, variable, rule, about, default: value }: Line): string => {
  const names = [key, variable].filter((name) => name !== undefined).map(code)
  const isSet = value !== undefined && !(Array.isArray(value) && value.length === 0)
  return [
    `- ${names.join(' or ')}${rule.secret === true ? ' (secret)' : ''}  `,
    `  ${about}  `,
    `  *Value:* ${rule.expected}.${isSet ? ` *Default:* ${shown(value)}.` : ''}`,
  ].join('\n')
}

const shown = (value: unknown): string =>
  Array.isArray(value) ? value.map(String).map(code).join(', ') : code(String(value))

const code = (text: string): string => `\`${text}\``
