import { agentNameProblem, sessionKinds } from '../fleet/agent.ts'
import { themeNames, themes } from '../fleet/names.ts'
import { type PoolSettings, stopOrder, wakeModes } from '../fleet/pool.ts'
import { promptPlaceholders, unknownPlaceholders } from '../fleet/prompt.ts'
import { providerNames } from '../provider-name.ts'
import type { MapKeys } from './file.ts'
import * as rule from './rules.ts'
import type { Rule } from './rules.ts'

export const sessionChoices = ['auto', ...sessionKinds] as const
export type SessionChoice = (typeof sessionChoices)[number]

const longestDrain = 24 * 60 * 60_000

/** The names of a theme, or a list of them. */
const agentNames: Rule<readonly string[]> = {
  expected: `one of ${themeNames.join(', ')}, or a list of names of lowercase letters, digits and dashes`,
  read: (value) => {
    const theme = themeNames.find((name) => name === value)
    if (theme !== undefined) return themes[theme]
    if (!Array.isArray(value) || value.length === 0 || value.length > 1_000) return undefined
    const names = value.filter((name) => typeof name === 'string' && agentNameProblem(name) === undefined)
    return names.length === value.length ? [...new Set(names as string[])] : undefined
  },
}

const promptTemplate: Rule<string> = {
  expected: `text of at most 20,000 characters; the placeholders are ${promptPlaceholders.map((name) => `{{${name}}}`).join(', ')}`,
  read: (value) => {
    const text = rule.template.read(value)
    return text !== undefined && unknownPlaceholders(text).length === 0 ? text : undefined
  },
}

const formulaName: Rule<string> = {
  expected: 'auto, pr, land, push, or the name of a formula in .coppice/formulas',
  read: (value) => (typeof value === 'string' && /^[a-z][a-z0-9-]{0,49}$/.test(value) ? value : undefined),
}

/** A pool's or an agent's. */
export const agentName: Rule<string> = {
  expected: 'a name of lowercase letters, digits and dashes',
  read: (value) => (typeof value === 'string' && agentNameProblem(value) === undefined ? value : undefined),
}

export type PoolRow<T> = { readonly default: T; readonly rule: Rule<NonNullable<T>>; readonly about: string }

/** Every key of a pool in `config.yaml`, by the name of its setting unless `key` says otherwise. */
export const poolTable: {
  readonly [Name in Exclude<keyof PoolSettings, 'name'>]: PoolRow<PoolSettings[Name]> & { readonly key?: string }
} = {
  agent: {
    default: undefined,
    rule: rule.text,
    about: 'The agent that its workers run. Default: the one that conversations use.',
  },
  command: {
    default: undefined,
    rule: rule.command,
    about: 'A command line that its workers run instead of an agent, with `sh -c` in the worktree.',
  },
  codebases: {
    default: undefined,
    rule: rule.list(rule.text, 1_000),
    about: 'The repositories that it works for, by name. Default: all.',
  },
  min: {
    default: 0,
    rule: rule.wholeNumber(0, 1_000, 0),
    about:
      'The number of workers to keep running. With 0, a worker is started for each item and removed when the item is done.',
  },
  max: { default: 5, rule: rule.wholeNumber(1, 1_000, 5), about: 'The maximum number of workers.' },
  pull: { default: false, rule: rule.flag, about: 'Whether the server starts ready items automatically.' },
  done: {
    default: 'auto',
    rule: formulaName,
    about:
      'The formula that `coppice done` runs. `auto` is `pr` if Coppice can open pull requests for the repository, else `push`.',
  },
  isolation: {
    default: undefined,
    rule: rule.oneOf(providerNames),
    about: 'Where its workers work: a `worktree` or a `clone`. Default: `isolation.provider`.',
  },
  names: {
    default: themes.trees,
    rule: agentNames,
    about: 'Names for its workers: a theme (`trees`, `rivers`, `stars`) or a list.',
  },
  prompt: {
    default: undefined,
    rule: promptTemplate,
    about:
      'A template for what `coppice prime` prints, such as `Work on {{item.title}} in {{branch}}.` It can use `{{item.id}}`, `{{item.title}}`, `{{item.body}}`, `{{agent}}`, `{{branch}}`, `{{codebase}}`, `{{directory}}` and `{{finish}}`.',
  },
  wake: {
    default: 'resume',
    rule: rule.oneOf(wakeModes),
    about: 'What a restarted worker does: `resume` the session of its program, or start a `fresh` one.',
  },
  dependsOn: {
    default: [],
    rule: rule.list(agentName, 100),
    about: 'Pools that must stop after this one.',
  },
  drainTimeoutMs: {
    default: 5 * 60_000,
    key: 'drainTimeout',
    rule: rule.duration(0, longestDrain, '5m'),
    about:
      'When the pool shrinks, how long a worker may keep working on its item. Then its session ends; its worktree and item stay.',
  },
}

export const defaultPool: PoolSettings = {
  name: 'workers',
  ...(Object.fromEntries(Object.entries(poolTable).map(([name, row]) => [name, row.default])) as Omit<
    PoolSettings,
    'name'
  >),
}

/** `fleet.pools` in `config.yaml`: a section for each pool. */
export const poolKeys = (): MapKeys<readonly PoolSettings[]> => ({
  name: agentName,
  most: 50,
  keys: new Map(
    Object.entries<PoolRow<unknown> & { readonly key?: string }>(poolTable).map(([name, row]) => [
      row.key ?? name,
      row.rule,
    ]),
  ),
  finish: (entries) => {
    const nameOf = new Map(
      Object.entries<{ readonly key?: string }>(poolTable).map(([name, { key = name }]) => [key, name]),
    )
    const pools = [...entries].map(([name, given]): PoolSettings => ({
      ...defaultPool,
      ...Object.fromEntries([...given].map(([key, value]) => [nameOf.get(key) ?? key, value])),
      name,
    }))
    const problem = problemIn(pools)
    return problem === undefined ? { value: pools } : problem
  },
})

/** Never read as a whole: each key of a pool has its own rule. */
export const anyPools: Rule<readonly PoolSettings[]> = {
  expected: 'a section with one entry per pool',
  read: () => undefined,
}

/** Checks that involve more than one key. */
const problemIn = (
  pools: readonly PoolSettings[],
): { readonly at: readonly [pool: string, key: string]; readonly problem: string } | undefined => {
  for (const pool of pools) {
    const { name } = pool
    if (pool.min > pool.max) return { at: [name, 'min'], problem: `min must not be more than max (${pool.max})` }
    if (pool.agent !== undefined && pool.command !== undefined) {
      return { at: [name, 'command'], problem: 'a pool has an agent or a command, not both' }
    }
    const unknown = pool.dependsOn.find((other) => other === name || !pools.some((one) => one.name === other))
    if (unknown !== undefined) {
      return { at: [name, 'dependsOn'], problem: `${JSON.stringify(unknown)} must be another pool` }
    }
  }
  if (stopOrder(pools) !== undefined) return undefined
  const name = pools.find(({ dependsOn }) => dependsOn.length > 0)?.name ?? ''
  return { at: [name, 'dependsOn'], problem: 'pools must not depend on each other in a circle' }
}
