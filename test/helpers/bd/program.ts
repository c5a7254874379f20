/*
 * As much of beads' program `bd` as `item sync beads` asks for, as its documentation for 1.0 has it (docs/CLI_REFERENCE.md,
 * docs/JSON_SCHEMA.md of github.com/steveyegge/beads): a real program with its own store, a file in `.beads`.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { BdIssue, BdState } from './bd.ts'

/** From the current directory up; one redirect is followed. */
const findStore = (from: string): string => {
  const found = join(from, '.beads')
  if (!existsSync(found) || !statSync(found).isDirectory()) {
    if (dirname(from) === from) throw fatal('no beads database found')
    return findStore(dirname(from))
  }
  const redirect = join(found, 'redirect')
  return existsSync(redirect) ? resolve(from, readFileSync(redirect, 'utf8').trim()) : found
}

const fatal = (error: string): Error => Object.assign(new Error(error), { fatal: true })

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean' },
    readonly: { type: 'boolean' },
    actor: { type: 'string' },
    status: { type: 'string' },
    reason: { type: 'string' },
  },
})

const said: string[] = []

const main = (): void => {
  const file = join(findStore(process.cwd()), 'state.json')
  const state = JSON.parse(readFileSync(file, 'utf8')) as BdState
  const [verb = '', ...words] = positionals
  const { PATH: _path, ...env } = process.env
  state.calls.push({ args: process.argv.slice(2), cwd: process.cwd(), env: Object.keys(env).toSorted() })
  const trouble = state.trouble[verb]
  if (trouble === 'hangs') return void setInterval(() => undefined, 1_000)
  if (trouble === 'fails') throw fatal('database is locked')
  if (values.readonly === true && verb !== 'export') throw fatal(`operation '${verb}' is not allowed in read-only mode`)
  act(state, verb, words)
  writeFileSync(file, JSON.stringify(state))
  // Done, and the answer never arrives.
  if (trouble === 'lost') process.kill(process.pid, 'SIGKILL')
  process.stdout.write(said.join(''))
}

const act = (state: BdState, verb: string, words: readonly string[]): void => {
  switch (verb) {
    case 'export':
      said.push(state.raw ?? state.issues.map((issue) => `${JSON.stringify(issue)}\n`).join(''))
      return
    case 'update':
      return change(state, words, (issue) => {
        const { status = '' } = values
        if (!['open', 'in_progress', 'blocked', 'deferred', 'closed'].includes(status)) {
          throw fatal(`invalid status "${status}"`)
        }
        issue.status = status
        return undefined
      })
    case 'close':
      return change(state, words, (issue) => {
        const blockers = blockersOf(state, issue)
        if (blockers.length > 0) {
          return `cannot close ${issue.id}: blocked by open issues [${blockers.join(' ')}] (use --force to override)`
        }
        issue.status = 'closed'
        issue.close_reason = values.reason ?? 'Closed'
        return undefined
      })
    case 'comments': {
      const [sub, id = '', text = ''] = words
      const issue = state.issues.find((one) => one.id === id)
      if (sub !== 'add' || issue === undefined) throw fatal(`no issue found matching "${id}"`)
      issue.comments = [...(issue.comments ?? []), { author: values.actor ?? '', text }]
      said.push(JSON.stringify({ schema_version: 1, id: 1, text }))
      return
    }
    default:
      throw fatal(`unknown command "${verb}" for "bd"`)
  }
}

const blockersOf = ({ issues }: BdState, { dependencies = [] }: BdIssue): string[] =>
  dependencies
    .filter(
      ({ type, depends_on_id: on }) => type === 'blocks' && issues.find(({ id }) => id === on)?.status !== 'closed',
    )
    .map(({ depends_on_id: on }) => on)

/** Those that were changed are the answer; it fails only if there are none. */
const change = (state: BdState, ids: readonly string[], apply: (issue: BdIssue) => string | undefined): void => {
  const changed: BdIssue[] = []
  for (const id of ids) {
    const issue = state.issues.find((one) => one.id === id)
    const why = issue === undefined ? `Issue ${id} not found` : apply(issue)
    if (why !== undefined) process.stderr.write(`${why}\n`)
    else if (issue !== undefined) changed.push(issue)
  }
  const answer = state.envelope === true ? { schema_version: 1, data: changed } : changed
  if (values.json === true && changed.length > 0) said.push(`${JSON.stringify(answer, undefined, 2)}\n`)
  if (changed.length === 0) process.exitCode = 1
}

try {
  main()
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(
    values.json === true ? JSON.stringify({ schema_version: 1, error: message }) : `Error: ${message}\n`,
  )
  process.exitCode = 1
}
