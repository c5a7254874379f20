import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Agent, AgentRequest } from '../../src/agents/agent.ts'
import { type Cycle, createSchedule } from '../../src/cleanup/schedule.ts'
import { createConversations } from '../../src/conversations/conversations.ts'
import { createOutbox } from '../../src/conversations/outbox/outbox.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { createMemory, type PlatformMemory } from '../../src/platforms/memory.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { startPlatforms, stopPlatforms } from '../../src/platforms/start.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { chatContext } from '../helpers/chat.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { type GithubDouble, startDouble } from './github-double.ts'

/**
 * What is behind a platform when its users tell their story, from the first mention to the clean-up: a repository with a
 * remote that opens pull requests by itself, real conversations, runs and cleanup. Only the agent is ours.
 */
export type Story = {
  readonly world: World
  readonly github: GithubDouble
  readonly origin: string
  /** What the agent was asked, and the content of the files it was given. */
  readonly asked: { readonly prompt: string; readonly files: readonly string[] }[]
  /** The agent has shown its first action, and waits until the test has seen it. */
  readonly seen: () => void
  memory(platform: string): PlatformMemory
  /** As `serve` starts it: what it accepts is worked on, and replies go to it. */
  start(platform: Platform): Promise<void>
  /** The one worktree that there is or was. */
  environment(): Promise<IsolatedEnvironment>
  /** Somebody merges the pull request on GitHub, squashed. */
  merge(): void
  /** One cycle of the schedule, two hours later: by then the thread no longer holds merged work. */
  cleanUpLater(): Promise<Cycle>
  [Symbol.asyncDispose](): Promise<void>
}

export const makeStory = async (): Promise<Story> => {
  const github = await startDouble()
  let later = 0
  const clock = (): number => Date.now() + later
  const log = createLogger({ write: () => undefined, level: 'error', clock, redact: (text) => text })
  const parts = { log, clock, secrets: createSecrets() }
  const world = await makeWorld({
    remote: true,
    context: { clock, forge: createGithubForge({ token: 'ghp_x', apiUrl: github.url }, parts, { timeoutMs: 10_000 }) },
    prepare: (repo) => void repo.commit('.coppice/config.yaml', 'pullRequests:\n  open: auto\n'),
  })
  const { context, codebase, box } = world
  const { store } = context
  await store.codebases.update(codebase.id, { github: 'acme/app' })
  const origin = box.path('origin.git')
  // REST "Create a pull request": the head must have been pushed.
  github.branches = () => box.raw(origin, 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')

  const seen = Promise.withResolvers<void>()
  const asked: { prompt: string; files: string[] }[] = []
  const agent: Agent = {
    name: 'demo',
    availability: async () => ({ state: 'ready', version: undefined }),
    run: async (request) => {
      const { prompt, attachments = [] } = request
      asked.push({ prompt, files: attachments.map(({ path }) => readFileSync(path, 'utf8')) })
      request.emit({ type: 'tool', line: 'read src/login.ts' })
      await seen.promise
      return fix(world, request)
    },
  }

  const platforms = new Map<string, Platform>()
  const talk = { ...chatContext(world, [agent]), deliveries: platforms }
  let stop = async (): Promise<void> => undefined
  const schedule = createSchedule({
    context,
    environments: talk.environments,
    intervalHours: 6,
    keepSpares: talk.keepSpares,
    onReport: () => talk.queue.outboxChanged(),
  })
  const environment = async (): Promise<IsolatedEnvironment> => {
    const [live] = await store.environments.live(codebase.id)
    if (live === undefined) throw new Error('there is no worktree')
    return live
  }
  return {
    world,
    github,
    origin,
    asked,
    seen: seen.resolve,
    environment,
    memory: (platform) => createMemory(platform, { store, clock }),
    start: async (platform) => {
      platforms.set(platform.platform, platform)
      const outbox = createOutbox({ ...talk, ...context, deliveries: platforms })
      const conversations = createConversations(talk, { outbox })
      stop = async () => {
        await stopPlatforms(platforms.values(), log)
        await conversations.stop(0)
      }
      await conversations.start()
      const { failed } = await startPlatforms(platforms.values(), (message) => conversations.accept(message), context)
      if (failed.length > 0) throw new Error(failed.map(({ problem }) => problem).join())
    },
    merge: () => squash(github, (...args) => box.raw(origin, ...args)),
    cleanUpLater: () => {
      later += 2 * HOUR_MS
      return schedule.runNow()
    },
    [Symbol.asyncDispose]: async () => {
      await stop()
      await schedule.stop()
      await github.close()
      await world[Symbol.asyncDispose]()
    },
  }
}

const HOUR_MS = 3_600_000

/** Commits only what it is allowed to. */
const fix = async ({ box }: World, { directory, ask }: AgentRequest): ReturnType<Agent['run']> => {
  const answer = await ask?.({ kind: 'permission', agent: 'demo', what: 'edit login.ts' })
  if (answer?.kind !== 'allowed') return { outcome: 'done', text: 'I may not fix it.' }
  writeFileSync(join(directory, 'login.ts'), 'export const cookie = true\n')
  box.raw(directory, 'add', 'login.ts')
  box.raw(directory, 'commit', '-q', '-m', 'Set the cookie')
  return { outcome: 'done', text: 'The cookie is set now.' }
}

/** "Squash and merge" makes one commit of GitHub's own on the base branch. */
const squash = (github: GithubDouble, git: (...args: string[]) => string): void => {
  const [pull] = github.opened
  if (pull === undefined) throw new Error('no pull request is open')
  const { number, head, base, title } = pull
  const tree = git('merge-tree', '--write-tree', base.ref, head.ref)
  const sha = git('commit-tree', tree, '-p', base.ref, '-m', `${title} (#${number})`)
  git('update-ref', `refs/heads/${base.ref}`, sha)
  const repo = { full_name: 'acme/app' }
  github.opened[0] = { ...pull, state: 'closed' }
  github.pulls.set(`acme/app#${number}`, {
    number,
    merged: true,
    merge_commit_sha: sha,
    head: { ref: head.ref, sha: git('rev-parse', head.ref), repo },
    base: { ref: base.ref, repo },
  })
}
