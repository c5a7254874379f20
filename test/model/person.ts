import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Command, command, pick, present } from './command.ts'
import { isOnMain, isUnreachable } from './questions.ts'
import { type Real, endProcess } from './real.ts'
import { filesOf, takeSnapshot } from './snapshot.ts'
import type { Environment, Model } from './state.ts'

/** What people and agents do with plain git and plain files. The model then knows what must not get lost. */

const onPresent = (
  kind: string,
  nth: number,
  shown: string,
  run: (model: Model, real: Real, environment: Environment) => boolean | Promise<boolean>,
): Command =>
  command(kind, `${nth}${shown === '' ? '' : `, ${shown}`}`, async (model, real) => {
    const environment = pick(present(model), nth)
    if (environment === undefined || !(await run(model, real, environment))) return false
    learn(model, real, environment)
    return true
  })

const learn = (model: Model, real: Real, environment: Environment): void => {
  environment.snapshot = takeSnapshot(real.git, environment.path)
  const { branch, sha } = environment.snapshot
  if (branch !== undefined) model.branches.set(branch, sha)
  const stranger = model.strangers.get(environment.path)
  if (stranger !== undefined) stranger.snapshot = environment.snapshot
}

const write = ({ path }: Environment, file: string, content: string): void => {
  mkdirSync(dirname(join(path, file)), { recursive: true })
  writeFileSync(join(path, file), content)
}

const made = (model: Model, environment: Environment): void => {
  if (environment.snapshot.branch !== environment.branch) return
  environment.own = true
  environment.lastActivityAt = model.now
}

export const commit = (nth: number): Command =>
  onPresent('commit', nth, '', (model, real, environment) => {
    const k = real.next()
    write(environment, `work-${k}.txt`, `work ${k}\n`)
    real.git(environment.path, 'add', `work-${k}.txt`)
    real.git(environment.path, 'commit', '-q', '-m', `work ${k}`)
    made(model, environment)
    return true
  })

export const amend = (nth: number): Command =>
  onPresent('amend', nth, '', (model, real, environment) => {
    const { snapshot, own, path, branch } = environment
    if (!own || snapshot.branch !== branch) return false
    const k = real.next()
    write(environment, `amended-${k}.txt`, `amended ${k}\n`)
    real.git(path, 'add', `amended-${k}.txt`)
    real.git(path, 'commit', '-q', '--amend', '-m', `amended ${k}`)
    environment.lost.push(snapshot.sha)
    made(model, environment)
    return true
  })

export const dirtKinds = ['tracked', 'untracked', 'ignored', 'staged', 'staged-then-changed', 'deleted'] as const

export const dirty = (nth: number, kind: (typeof dirtKinds)[number]): Command =>
  onPresent('dirty', nth, kind, (_, real, environment) => {
    const k = real.next()
    const text = `${kind} ${k}\n`
    const file =
      { tracked: 'src/a.txt', deleted: 'README', ignored: `dir/${k}.log` }[kind as string] ?? `dir/${kind}-${k}.txt`
    if (kind === 'deleted') rmSync(join(environment.path, file), { force: true })
    else write(environment, file, text)
    if (kind === 'staged' || kind === 'staged-then-changed') real.git(environment.path, 'add', file)
    if (kind === 'staged-then-changed') write(environment, file, `${text}and more\n`)
    return true
  })

/** A person throws away what is uncommitted: from then on nobody need keep it. */
export const clean = (nth: number): Command =>
  onPresent('clean', nth, '', (_, real, environment) => {
    real.git(environment.path, 'reset', '-q', '--hard')
    real.git(environment.path, 'clean', '-q', '-f', '-d', '-x')
    return true
  })

export const detach = (nth: number): Command =>
  onPresent('detach', nth, '', (_, real, environment) => {
    if (environment.snapshot.branch === undefined) {
      if (isUnreachable(real, environment)) environment.lost.push(environment.snapshot.sha)
      return couldDo(() => real.git(environment.path, 'checkout', '-q', environment.branch))
    }
    real.git(environment.path, 'checkout', '-q', '--detach')
    return true
  })

const couldDo = (attempt: () => unknown): boolean => {
  try {
    attempt()
    return true
  } catch {
    return false
  }
}

export const push = (nth: number): Command =>
  onPresent('push', nth, '', (model, real, { path, snapshot }) => {
    if (snapshot.branch === undefined) return false
    real.git(path, 'push', '-q', 'origin', `+HEAD:refs/heads/${snapshot.branch}`)
    model.origin.set(snapshot.branch, snapshot.sha)
    return true
  })

export const mergeKinds = ['merge', 'fast-forward', 'squash'] as const

/** A colleague lands the branch on main and pushes; the canonical checkout's own main stays as old as it is. */
export const merge = (nth: number, kind: (typeof mergeKinds)[number], movesOn: boolean): Command =>
  onPresent(kind, nth, movesOn ? 'and main moves on' : '', (model, real, { branch }) => {
    const { git, colleague, world } = real
    const tip = model.branches.get(branch)
    if (tip === undefined || isOnMain(real)(tip) || model.landed.has(tip)) return false
    git(colleague, 'fetch', '-q', world.repo.path, `refs/heads/${branch}`)
    const how = { merge: ['--no-ff', '--no-edit'], 'fast-forward': ['--ff-only'], squash: ['--squash'] }[kind]
    const landed = couldDo(() => {
      git(colleague, 'merge', '-q', ...how, tip)
      if (kind === 'squash') git(colleague, 'commit', '-q', '-m', `squash of ${branch}`)
    })
    if (!landed) {
      git(colleague, 'reset', '-q', '--hard', 'origin/main')
      return false
    }
    const k = real.next()
    if (movesOn) {
      writeFileSync(join(colleague, `main-${k}.txt`), `main ${k}\n`)
      git(colleague, 'add', '.')
      git(colleague, 'commit', '-q', '-m', `main ${k}`)
    }
    git(colleague, 'push', '-q', 'origin', 'main')
    model.origin.set('main', git(colleague, 'rev-parse', 'main'))
    model.landed.add(tip)
    return true
  })

export const unmount = (nth: number): Command =>
  command('unmount', String(nth), async (model, real) => {
    const environment = pick(
      present(model).filter(({ owned, inUse }) => owned && !inUse),
      nth,
    )
    if (environment === undefined) return false
    environment.away = real.world.box.path(`away-${real.next()}`)
    renameSync(environment.path, environment.away)
    return true
  })

/** Back in its place, if that is free. What was given up meanwhile is just a directory of a person's then. */
export const remount = (nth: number): Command =>
  command('remount', String(nth), async (model) => {
    const away = [...model.environments.values()].filter((one) => one.away !== undefined && !existsSync(one.path))
    const given = [...model.points.values()].filter(
      ({ environment: one }) => one.away !== undefined && model.leftovers.has(one.away) && !existsSync(one.path),
    )
    const environment = pick([...away, ...given.map((point) => point.environment)], nth)
    if (environment?.away === undefined) return false
    renameSync(environment.away, environment.path)
    if (model.leftovers.delete(environment.away)) model.leftovers.set(environment.path, filesOf(environment.path))
    else environment.away = undefined
    return true
  })

/** Somebody works in it, or a tool has locked it; the second time it ends. */
export const use = (nth: number, kind: 'lock' | 'process'): Command =>
  onPresent('use', nth, kind, async (_, real, environment) => {
    const { id, path, inUse } = environment
    const child = real.inside.get(id)
    environment.inUse = !inUse
    if (child !== undefined) {
      real.inside.delete(id)
      await endProcess(child)
    } else if (inUse) real.git(path, 'worktree', 'unlock', path)
    else if (kind === 'lock') real.git(path, 'worktree', 'lock', '--reason', 'another tool', path)
    else {
      const started = spawn('sleep', ['1000'], { cwd: path, stdio: 'ignore' })
      await once(started, 'spawn')
      real.inside.set(id, started)
    }
    return true
  })

/** A worktree of a person's own: beside everything, or at the very path that an issue's environment would get. */
export const stranger = (issue: number): Command =>
  command('stranger', issue === 0 ? 'beside' : `for issue ${issue}`, async (model, real) => {
    const branch = issue === 0 ? `mine-${real.next()}` : `issue-${issue}`
    const root = join(real.context.worktreesBase, 'project')
    const path = issue === 0 ? real.world.box.path(branch) : join(root, branch)
    if (existsSync(path) || model.branches.has(branch) || model.strangers.has(path)) return false
    mkdirSync(root, { recursive: true })
    real.git(real.world.repo.path, 'worktree', 'add', '-q', '-b', branch, path)
    writeFileSync(join(path, 'mine.txt'), `mine ${branch}\n`)
    const snapshot = takeSnapshot(real.git, path)
    model.branches.set(branch, snapshot.sha)
    model.strangers.set(path, { branch, snapshot })
    return true
  })

export const branch = (): Command =>
  command('branch', '', async (model, real) => {
    const name = `person-${real.next()}`
    real.git(real.world.repo.path, 'branch', name)
    model.branches.set(name, model.canonical.sha)
    return true
  })
