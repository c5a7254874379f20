import { afterAll, beforeAll, expect, test } from 'vitest'
import { becomesHealthy, ensureImage, nodeImage, nodeStandIn, openPodman, type Podman } from './podman.ts'

/*
 * The image of the Dockerfile, built and run by podman: who it runs as, what its agents can see, and what a stop, a
 * restart and a new container keep.
 */

const SECRET = 'webhook-secret-0123456789'

let podman: Podman
beforeAll(() => {
  podman = openPodman()
  ensureImage(podman, nodeImage, () => nodeStandIn(podman))
  podman.documented('podman build --format docker --tag coppice .')
})
afterAll(() => podman[Symbol.dispose]())

/** `agent` is a shell command. */
const start = async (name: string, agent: string): Promise<void> => {
  const volumes = ['-v', 'home:/.coppice', '-v', 'user:/home/node']
  const hardened = ['--cap-drop', 'all', '--security-opt', 'no-new-privileges']
  const env = ['-e', `GITHUB_WEBHOOK_SECRET=${SECRET}`, '-e', `COPPICE_AGENT_COMMAND=${agent}`]
  podman.run('run', '-d', '--name', name, ...volumes, ...hardened, ...env, 'coppice')
  await becomesHealthy(podman, name)
}

const inside = (name: string, script: string): string => podman.run('exec', name, 'sh', '-ec', script)
const exitCode = (name: string): string => podman.run('inspect', '--format', '{{.State.ExitCode}}', name)
const exists = (name: string, path: string): boolean => podman.attempt('exec', name, 'test', '-e', path).code === 0

test('the commands of the page run it without compose', async () => {
  podman.documented(
    'podman run -d --name coppice --restart unless-stopped -p 127.0.0.1:4780:4780 -v coppice-home:/.coppice -v coppice-user:/home/node --cap-drop all --security-opt no-new-privileges coppice',
  )
  await becomesHealthy(podman, 'coppice')
  expect((await fetch('http://127.0.0.1:4780/healthz')).status).toBe(200)
  podman.run('rm', '--force', '--time', '45', 'coppice')
})

test('the server runs as an ordinary user, answers its health check, and its agents see none of its secrets', async () => {
  const look = 'id -un; cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -c webhook-secret || echo "no secret"'
  await start('first', `${look}; git commit -q --allow-empty -m x; git log -1 --format="by %an <%ae>"`)
  expect(inside('first', 'id -u; stat -c "%a %U" /.coppice; tr "\\0" " " < /proc/1/cmdline')).toBe(
    '1000\n700 node\ntini -- coppice serve --host 0.0.0.0 --allow-remote',
  )
  expect(podman.run('logs', 'first')).not.toMatch(/agents can read/)
  inside('first', 'git init -q -b main project && git -C project commit -q --allow-empty -m first')
  // Not through a shell, which would have the container's variables in its own environment.
  const chat = (): string => podman.run('exec', '--workdir', '/home/node/project', 'first', 'coppice', 'chat', 'look')
  const answer = chat()
  expect(answer).toContain('node\n0\nno secret')
  expect(answer).toContain('by Coppice <coppice@localhost>')
  inside('first', 'git config --global user.name Ada && git config --global user.email ada@example.com')
  expect(chat()).toContain('by Ada <ada@example.com>')
  expect(inside('first', 'cd project && coppice doctor')).toContain('No problems found.')
  expect(
    inside('first', 'cd project && coppice worktree create --issue 7 && coppice worktree remove issue-7'),
  ).not.toMatch(/could not inspect/)
  podman.run('stop', '--time', '45', 'first')
  expect([exitCode('first'), podman.run('logs', 'first')]).toEqual(['0', expect.stringContaining('Stopped.')])
  podman.run('rm', 'first')
})

test('a stop requeues what runs; a new container with the same volumes answers it and goes on, and so it does after a kill', async () => {
  await start('second', 'touch /home/node/began; sleep 600')
  inside('second', 'cd project && coppice chat --conversation cli-kept "keep this" >/dev/null 2>&1 &')
  await expect.poll(() => exists('second', '/home/node/began'), { timeout: 60_000 }).toBe(true)
  podman.run('stop', '--time', '45', 'second')
  expect([exitCode('second'), podman.run('logs', 'second')]).toEqual([
    '0',
    expect.stringContaining('1 unfinished message will run again on the next start'),
  ])
  podman.run('rm', 'second')
  await start('third', 'echo "heard $(cat), attempt $COPPICE_ATTEMPT"; touch "/home/node/attempt-$COPPICE_ATTEMPT"')
  await expect.poll(() => exists('third', '/home/node/attempt-2'), { timeout: 60_000 }).toBe(true)
  const next = inside('third', 'cd project && coppice chat --conversation cli-kept "and this"')
  expect(next).toContain('heard and this, attempt 1')
  expect(next, 'the same worktree').not.toContain('Working in')
  podman.run('kill', '--signal', 'KILL', 'third')
  podman.run('wait', 'third')
  podman.run('start', 'third')
  await becomesHealthy(podman, 'third')
  expect(inside('third', 'cd project && coppice chat --conversation cli-kept "once more"')).toContain('heard once more')
})
