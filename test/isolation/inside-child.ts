import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { onConversationClosed } from '../../src/cleanup/closed.ts'
import { runScheduledCleanup } from '../../src/cleanup/sweep.ts'
import { examineHome } from '../../src/cli/doctor/records.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { AppError, toAppError } from '../../src/domain/errors.ts'
import { removeWorktreeRecord } from '../../src/git/worktree-remove.ts'
import { addClone } from '../../src/isolation/codebases/clone-repository.ts'
import { removeCodebase } from '../../src/isolation/codebases/remove.ts'
import type { RemoveOutcome } from '../../src/isolation/remove-outcome.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { cleanupToMakeRoom } from '../../src/isolation/make-room.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { discardDirectory } from '../../src/isolation/trash/trash.ts'
import { deleteTreeSync } from '../../src/process/files/delete-tree.ts'
import { mountsByDevice } from '../../src/process/files/mounts.ts'
import { canMount } from '../helpers/with-mounts.ts'
import { makeContext, makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { ignoreFile, type Kind, keepable, kinds, kindsAt, unmountAll } from './inside-kinds.ts'
import { conversation, inside, issue, remove, resolved } from './scene.ts'
import { messageIn, remedyIn } from '../helpers/words.ts'

/** Every way to remove against everything that must outlive it: what became of it, by way and kind. */
export type Seen = { readonly outcome: string; readonly isWhole: boolean }
export type Report = Record<string, Record<string, Seen>>
export type Told = { readonly report: Report; readonly more: Record<string, string> }

const report: Report = {}
const more: Record<string, string> = {}
const note = (way: string, { name }: Kind, outcome: string, isWhole: boolean): void => {
  report[way] = { ...report[way], [name]: { outcome, isWhole } }
}

const inWorld = async (options: WorldOptions, work: (world: World) => Promise<void>): Promise<void> => {
  const prepare: WorldOptions['prepare'] = (repo) => void repo.commit('.gitignore', ignoreFile)
  const world = await makeWorld({ prepare, ...options })
  try {
    await work(world)
  } finally {
    unmountAll(world.box.root)
    await world[Symbol.asyncDispose]()
  }
}

const outcomeOf = (answer: RemoveOutcome): string =>
  answer.outcome === 'refused'
    ? answer.reasons.map(({ gate, answer: said }) => `${gate} ${said}`).join()
    : answer.outcome

/** Merged work, so that nothing but what is inside it stands against its removal. */
const landed = async (world: World, number: number): Promise<IsolatedEnvironment> => {
  const environment = await issue(world, number)
  inside(world, environment).commit(`file-${number}`, 'work\n')
  world.repo.git('merge', '-q', '--no-ff', '-m', 'land', environment.branch)
  return environment
}

/** Nothing is removed on any of these ways, so they all get the same environments. */
await inWorld({}, async (world) => {
  const { context, provider, codebase } = world
  const all: { kind: Kind; environment: IsolatedEnvironment; isWhole: () => boolean }[] = []
  for (const [number, kind] of kindsAt('an environment').entries()) {
    const environment = await landed(world, number + 1)
    all.push({ kind, environment, isWhole: kind.plant(world, environment.path) })
  }
  const ask = async (way: string, question: (environment: IsolatedEnvironment) => Promise<string>): Promise<void> => {
    for (const { kind, environment, isWhole } of all) {
      const outcome = await question(environment)
      note(way, kind, outcome, isWhole() && existsSync(environment.path))
    }
  }
  await ask('the command', async (environment) => outcomeOf(await remove(world, environment)))
  await ask('the fleet', async (environment) => outcomeOf(await remove(world, environment, { trigger: 'fleet' })))
  await ask('a closed conversation', async (environment) => {
    const closed = await conversation(world, { environmentId: environment.id })
    const answer = await onConversationClosed(context, provider, closed)
    return answer.outcome === 'asked' ? outcomeOf(answer.removal) : answer.outcome
  })
  for (const only of ['merged', 'stale'] as const) {
    const now = { ...context, settings: { ...context.settings, staleDays: 0 } }
    const { skipped, removed } = await runScheduledCleanup(now, provider, codebase, { only })
    await ask(`the sweep of what is ${only}`, async ({ id }) => {
      if (removed.some((one) => one.environment.id === id)) return 'removed'
      const found = skipped.find((one) => one.environment.id === id)
      return found === undefined ? 'not asked' : outcomeOf({ outcome: 'refused', ...found })
    })
  }
  const { removed } = await cleanupToMakeRoom(context, provider, codebase)
  await ask('making room', async () => (removed === 0 ? 'kept' : 'removed'))
  for (const { kind, environment, isWhole } of all) {
    const answer = await remove(world, environment, { force: true })
    if (answer.outcome === 'removed' && answer.restorePoint !== undefined) await provider.restore(answer.restorePoint)
    note('the forced command', kind, outcomeOf(answer), isWhole())
  }
})

/** A pull request moves to a commit that has a file wherever one of them is. Nothing moves, so they share everything. */
await inWorld({ remote: true }, async (world) => {
  const reviewed = kindsAt('a review')
  world.box.raw(world.box.root, 'clone', '-q', world.box.path('origin.git'), world.box.path('fork'))
  const fork = inside(world, { path: world.box.path('fork') })
  const heads = (sha: string): string[] => reviewed.map((_, i) => `${sha}:refs/pull/${i + 1}/head`)
  const commit = (...files: string[]): string => files.map((file) => fork.commit(file, 'theirs\n')).at(-1) ?? ''
  const places = ['ign', 'node_modules', '.venv', '.claude']
  const first = commit('one', 'volume/file')
  const forward = commit(...places)
  fork.git('rm', '-rq', 'volume')
  const overVolume = commit('volume')
  fork.git('reset', '-q', '--hard', 'origin/main')
  const rewritten = commit('other', ...places)
  const rewrittenOverVolume = commit('volume')
  const ask = (number: number, prSha: string) =>
    resolved(world, 'pr', number, { hints: { isForkPR: true, prBranch: 'x', prSha } })
  fork.git('push', '-q', 'origin', ...heads(first))
  const whole: (() => boolean)[] = []
  for (const [i, kind] of reviewed.entries()) {
    const { environment } = await ask(i + 1, first)
    whole.push(kind.plant(world, environment.path))
  }
  for (const [way, sha] of Object.entries({
    'a pull request that moved on': forward,
    'a rewritten pull request': rewritten,
  })) {
    fork.git('push', '-q', '--force', 'origin', ...heads(sha))
    for (const [i, kind] of reviewed.entries()) {
      const { environment } = await ask(i + 1, sha)
      const head = inside(world, environment).git('rev-parse', 'HEAD')
      note(way, kind, head === first ? 'left' : 'moved', whole[i]?.() === true)
    }
  }
  if (!canMount) return
  const number = reviewed.length + 1
  const volume = world.box.path('volume')
  mkdirSync(volume)
  // As git has it: only the mount itself tells that it is not the worktree's own.
  writeFileSync(join(volume, 'file'), 'theirs\n')
  const moveTo = async (sha: string) => {
    fork.git('push', '-q', '--force', 'origin', `${sha}:refs/pull/${number}/head`)
    return (await ask(number, sha)).environment
  }
  const { path } = await moveTo(first)
  execFileSync('mount', ['--bind', volume, join(path, 'volume')])
  const seen: string[] = []
  for (const sha of [overVolume, rewrittenOverVolume]) {
    const head = inside(world, await moveTo(sha)).git('rev-parse', 'HEAD')
    seen.push(`${head === first ? 'left' : 'moved'} ${readdirSync(volume).join()}`)
  }
  more['a volume in place of a tracked directory'] = seen.join('; ')
})

/** It appears while a removal is under way. */
for (const when of ['remove.saved', 'remove.moved', 'remove.checked'] as const) {
  let late: (() => void) | undefined
  const failpoint = async (name: string): Promise<void> => {
    if (name !== when) return
    late?.()
    late = undefined
  }
  await inWorld({ context: { failpoint } }, async (world) => {
    for (const [number, kind] of kindsAt(when).entries()) {
      const environment = await landed(world, number + 1)
      const path =
        when === 'remove.saved' ? environment.path : join(world.context.worktreesBase, '.trash', environment.id)
      let isWhole = (): boolean => false
      late = () => {
        isWhole = kind.plant(world, path)
      }
      const outcome = await remove(world, environment).then(outcomeOf, () => 'failed')
      const there = outcome === 'removed' ? '' : environment.path
      note(
        `after ${when}`,
        kind,
        outcome,
        keepable.has(kind.name) ? existsSync(there) : isWhole() || isMoved(world, kind, environment),
      )
    }
  })
}

/** Git's record still names the place in the trash, so its own questions about the worktree do not work there. */
function isMoved(world: World, kind: Kind, environment: IsolatedEnvironment): boolean {
  const trash = join(world.context.worktreesBase, '.trash')
  const gone = existsSync(trash) ? readdirSync(trash).filter((name) => name.includes(environment.id)) : []
  const places = [environment.path, ...gone.map((name) => join(trash, name))]
  const inner = {
    'no-worktree-inside': ['.claude/worktrees/a/work', 'node_modules/deep/a/work'],
    'no-mount': ['ign/gold'],
  }
  const files = kind.gate === 'no-worktree-inside' || kind.gate === 'no-mount' ? inner[kind.gate] : []
  return places.some((place) => files.some((file) => existsSync(join(place, file))))
}

await inWorld({}, async (world) => {
  const hung: string[] = []
  // A dead process that got as far as this.
  const self = { pid: 2 ** 22 + 1, startTime: '1' }
  const failpoint = (name: string): Promise<void> => {
    if (name !== 'create.dressed') return Promise.resolve()
    reached()
    return new Promise(() => undefined)
  }
  let reached = (): void => undefined
  const dead: World = { ...world, context: { ...world.context, self, failpoint } }
  const { createEnvironments: createIsolation } = await import('../../src/isolation/environments.ts')
  const whole: (() => boolean)[] = []
  const created = kindsAt('a creation')
  for (const [number, kind] of created.entries()) {
    const arrived = new Promise<void>((resolve) => {
      reached = resolve
    })
    void issue({ ...dead, provider: createIsolation(dead.context) }, number + 1)
    await arrived
    const path = join(world.context.worktreesBase, 'project', `issue-${number + 1}`)
    hung.push(path)
    whole.push(kind.plant(world, path))
  }
  await reconcile(world.context, world.codebase)
  const points = await world.context.store.restorePoints.list(world.codebase.id)
  for (const [number, kind] of created.entries()) {
    const isLeft = existsSync(hung[number] ?? '')
    const point = points.find(({ contents }) => contents.environment.branch === `issue-${number + 1}`)
    if (!isLeft && point !== undefined) await world.provider.restore(point)
    note('undoing an interrupted creation', kind, isLeft ? 'left' : 'undone', whole[number]?.() === true)
  }
})

/** A spare that turns out not to serve. */
const cannotServe = async (name: string): Promise<void> => {
  if (name === 'create.spare-switched') throw new Error('it cannot be moved')
}
const retired = kindsAt('a spare that cannot serve')
await inWorld({ settings: { spares: retired.length + 1 }, context: { failpoint: cannotServe } }, async (world) => {
  await keepSpares(world.context, world.codebase)
  const spares = await world.context.store.spares.list(world.codebase.id)
  const whole = retired.map((kind, i) => kind.plant(world, spares[i]?.path ?? ''))
  // A mount that git does not notice.
  const readme = join(spares.at(-1)?.path ?? '', 'README')
  if (canMount) execFileSync('mount', ['--bind', readme, readme])
  for (const [i] of spares.entries()) await issue(world, i + 1)
  more['retiring a spare with a mounted file'] = existsSync(readme) ? 'left' : 'discarded'
  for (const [i, kind] of retired.entries()) {
    note('retiring a spare', kind, existsSync(spares[i]?.path ?? '') ? 'left' : 'discarded', whole[i]?.() === true)
  }
})

const discarded = kindsAt('a spare')
await inWorld({ settings: { spares: discarded.length } }, async (world) => {
  await keepSpares(world.context, world.codebase)
  const spares = await world.context.store.spares.list(world.codebase.id)
  const whole = discarded.map((kind, i) => kind.plant(world, spares[i]?.path ?? ''))
  await removeCodebase(world.context, world.codebase)
  for (const [i, kind] of discarded.entries()) {
    note('discarding a spare', kind, existsSync(spares[i]?.path ?? '') ? 'left' : 'discarded', whole[i]?.() === true)
  }
})

await inWorld({}, async (world) => {
  await issue(world, 1)
  const root = world.context.worktreesBase
  const gone: { kind: Kind; path: string; isWhole: () => boolean }[] = []
  for (const [i, kind] of kindsAt('the trash').entries()) {
    mkdirSync(join(root, 'project', `gone-${i}`))
    const path = await discardDirectory(root, join(root, 'project', `gone-${i}`), String(i))
    gone.push({ kind, path, isWhole: kind.plant(world, path) })
  }
  await reconcile(world.context, world.codebase)
  for (const { kind, path, isWhole } of gone) {
    note('emptying the trash', kind, existsSync(path) ? 'left' : 'deleted', isWhole())
  }
})

await inWorld({}, async (world) => {
  const context = await makeContext(world.box, {}, { store: world.context.store })
  for (const [i, kind] of kindsAt('a clone').entries()) {
    const origin = world.box.path(`origin-${i}`)
    world.box.raw(world.box.root, 'clone', '-q', '--bare', world.repo.path, origin)
    const { codebase } = await addClone(context, `file://${origin}`, {})
    const isWhole = kind.plant(world, codebase.repoPath)
    const { cloneDeleted } = await removeCodebase(context, codebase)
    const isLeft = !cloneDeleted && existsSync(codebase.repoPath)
    note('removing a cloned codebase', kind, isLeft ? 'left' : 'deleted', isWhole())
  }
})

if (canMount) {
  const trash = 'gone-mounted'
  await inWorld({}, async (world) => {
    await issue(world, 1)
    const at = join(world.context.worktreesBase, '.trash', trash)
    mkdirSync(at, { recursive: true })
    const isWhole = kinds[0]?.plant(world, at)
    const findings = await examineHome(world.context, [world.codebase])
    more['doctor'] = findings
      .map((finding) => `${finding.detail} → ${remedyIn(finding)}`)
      .join('\n')
      .replaceAll(world.box.root, '')
    kinds.find(({ name }) => name === 'a tmpfs')?.plant(world, at)
    const byDevice = await mountsByDevice(Buffer.from(world.context.worktreesBase))
    more['found by device'] = byDevice.map(({ path }) => path.replace(world.box.root, '')).join()
    more['whole after doctor'] = String(isWhole?.())
  })
  await inWorld({}, async (world) => {
    const [one, other] = [world.box.path('tree/one'), world.box.path('tree/other')]
    for (const path of [one, other, world.box.path('outside')]) mkdirSync(path, { recursive: true })
    for (const file of ['tree/one/.git', 'tree/other/.git', 'outside/gold'])
      writeFileSync(world.box.path(file), 'gold\n')
    let left = ''
    // Both are listed before either is entered: the second becomes a mount while the first is being deleted.
    let first: string | undefined
    const leave = (directory: Buffer): undefined => {
      first ??= directory.toString()
      const second = first === one ? other : one
      if (directory.toString() === first) execFileSync('mount', ['--bind', world.box.path('outside'), second])
    }
    try {
      deleteTreeSync(world.box.path('tree'), { leave })
    } catch (error) {
      left = String(error)
    }
    more['mounted while it is deleted'] = String(existsSync(world.box.path('outside/gold')))
    more['what was left'] = left.replaceAll(world.box.root, '')
  })
  await inWorld({}, async (world) => {
    const { path, gitDir } = world.repo.worktree('gone', '-b', 'gone')
    rmSync(path, { recursive: true })
    const isWhole = kinds[0]?.plant(world, gitDir)
    const asked = removeWorktreeRecord(world.context.git, world.repo, { dir: gitDir })
    more['forgetting a record'] =
      String(await asked.catch((error: unknown) => toAppError(error).message)).split(':')[0] ?? ''
    more['whole in a record'] = String(isWhole?.())
  })
  // No rename leads out of a mount: the trash has to be on the same one.
  let interrupt: string | undefined
  const failpoint = async (name: string): Promise<void> => {
    if (name === interrupt) throw new Error('interrupted')
  }
  await inWorld({ context: { failpoint, deleteInBackground: () => undefined } }, async (world) => {
    const { context, codebase, provider } = world
    const environment = await issue(world, 1)
    const directory = dirname(environment.path)
    execFileSync('mount', ['--bind', directory, directory])
    inside(world, environment).write('precious', 'precious\n')
    const state = (): string =>
      [environment.path, join(directory, '.trash', environment.id)]
        .map((path) => existsSync(join(path, 'precious')))
        .join()
    interrupt = 'remove.moved'
    await remove(world, environment, { force: true }).catch(() => undefined)
    more['undone on a mount'] = state()
    interrupt = undefined
    const answer = await remove(world, environment, { force: true })
    more['removed on a mount'] = `${outcomeOf(answer)} ${readdirSync(join(directory, '.trash')).length}`
    if (answer.outcome === 'removed' && answer.restorePoint !== undefined) {
      const { environment: back } = await provider.restore(answer.restorePoint)
      more['restored on a mount'] = inside(world, back).read('precious')
      const deleteInBackground = (paths: readonly string[]): void => paths.forEach((path) => deleteTreeSync(path))
      await reconcile({ ...context, deleteInBackground }, codebase)
      more['emptied on a mount'] = readdirSync(join(directory, '.trash')).join()
      mkdirSync(world.box.path('elsewhere'))
      execFileSync('mount', ['--bind', world.box.path('elsewhere'), join(directory, '.trash')])
      const refused = await remove(world, back, { force: true }).catch((error: unknown) => toAppError(error))
      const said = refused instanceof AppError ? `${messageIn(refused)} → ${remedyIn(refused)}` : outcomeOf(refused)
      more['nowhere to move it'] = said.replaceAll(world.box.root, '')
      more['kept on a mount'] =
        `${inside(world, back).read('precious').trim()} ${(await context.store.environments.get(back.id))?.status}`
    }
  })
  await inWorld({}, async (world) => {
    const environment = await landed(world, 1)
    writeFileSync(world.box.path('nonsense'), 'nonsense\n')
    const table = `/proc/${process.pid}/mountinfo`
    execFileSync('mount', ['--bind', world.box.path('nonsense'), table])
    const answers = [await remove(world, environment), await remove(world, environment, { force: true })]
    execFileSync('umount', [table])
    more['a mount table that makes no sense'] = answers.map(outcomeOf).join()
  })
}

process.stdout.write(JSON.stringify({ report, more }))
// Creations that hang for ever hold nothing that matters, but timers of theirs may.
process.exit(0)
