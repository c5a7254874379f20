import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../helpers/server-process.ts'
import { alice, commented, dated, makeGithub, post } from './github-double.ts'
import { makeStory } from './story.ts'

/* What people see on an issue, from the first comment to the last. GitHub has no buttons: words do their work. */

const issue = 'acme/app#42'

test('a mention with a file is worked on, allowed in words, linked as a draft, merged, cleaned up and restored', async () => {
  await using story = await makeStory()
  const { github } = story
  github.permissions.set('alice', { id: 5, permission: 'write' })
  const settings = { token: 'ghp_test', bot: 'coppice', apiUrl: github.url }
  const { platform } = await makeGithub(settings, { previewEveryMs: 20 }, Date.now, story.memory('github'))
  await story.start(platform)
  github.files.set('/user-attachments/files/3/app.log', 'GET /login 500')
  const log = `${github.url}/user-attachments/files/3/app.log`
  await say(`@coppice fix the login: [app.log](${log})`, 1_000)
  await until('it is seen', async () => github.reactions.has('comment:1000 eyes') || undefined)

  const preview = await shown('read src/login.ts')
  expect(story.asked).toEqual([{ prompt: `fix the login: [app.log](${log})`, files: ['GET /login 500'] }])
  const { path } = await story.environment()
  expect(bodies()[0]).toContain('isolated branch `issue-42`')

  story.seen()
  expect(await shown('`demo` asks for permission: edit login.ts')).toContain('`/allow`')
  await say('@coppice /allow', 1_001)
  expect(await shown('pull request #7')).toContain('Opened draft pull request #7: https://github.test/acme/app/pull/7')
  expect(bodies()).not.toContain(preview)
  expect(bodies().filter((body) => body.startsWith('The cookie is set now.'))).toHaveLength(1)
  expect(github.opened).toMatchObject([{ title: 'Set the cookie', draft: true, head: { ref: 'issue-42' } }])
  // This is what makes GitHub close the issue with the pull request.
  expect(github.opened[0]?.body).toMatch(/^(?:Closes|Fixes) #42$/m)
  expect(story.world.box.raw(story.origin, 'show', 'issue-42:login.ts')).toBe('export const cookie = true')

  story.merge()
  await closes('pull_request', { id: 7, title: 'Set the cookie', user: github.self, ...github.pulls.get('acme/app#7') })
  await closes('issues', { id: 42, number: 42, title: 'Login is broken', user: alice })
  expect(await shown('Worktree `issue-42` was removed')).toContain('`/worktree restore issue-42`')
  expect(existsSync(path)).toBe(false)
  const { store } = story.world.context
  expect(await store.restorePoints.list(story.world.codebase.id)).toMatchObject([
    { contents: { environment: { branch: 'issue-42' } } },
  ])
  await say('@coppice /worktree restore issue-42', 1_002)
  await shown('Restored `issue-42`')
  expect(readFileSync(join((await story.environment()).path, 'login.ts'), 'utf8')).toBe('export const cookie = true\n')

  function bodies(): string[] {
    return github.bodies(issue)
  }
  function shown(part: string): Promise<string> {
    return until(`"${part}" is shown`, async () => bodies().find((body) => body.includes(part)), 15_000)
  }
  async function say(text: string, id: number): Promise<void> {
    expect(await post(platform, commented(text, { id }))).toMatchObject({ status: 200, body: 'accepted' })
  }
  /** Webhook events "pull_request" and "issues", both with the action `closed`. */
  async function closes(event: 'pull_request' | 'issues', what: object): Promise<void> {
    const subject = { [event === 'issues' ? 'issue' : event]: { ...what, ...dated() } }
    const payload = { action: 'closed', repository: { full_name: 'acme/app' }, sender: alice, ...subject }
    expect(await post(platform, { event, payload })).toMatchObject({ status: 200, body: 'accepted' })
  }
})
