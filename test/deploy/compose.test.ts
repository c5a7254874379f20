import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  becomesHealthy,
  ensureImage,
  nodeImage,
  nodeStandIn,
  openPodman,
  type Podman,
  postgresImage,
  postgresStandIn,
} from './podman.ts'

/*
 * compose.yaml with podman-compose, on SQLite and on PostgreSQL, and the backup of each, taken while the server runs and
 * restored into empty volumes, with the commands of docs/deploy.md.
 */

let podman: Podman
beforeAll(() => {
  podman = openPodman()
  ensureImage(podman, nodeImage, () => nodeStandIn(podman))
  ensureImage(podman, postgresImage, () => postgresStandIn(podman))
  podman.documented('podman-compose build server')
})
afterAll(() => podman[Symbol.dispose]())
beforeEach(() => {
  podman.attempt('rm', '--all', '--force', '--time', '0')
  podman.attempt('volume', 'rm', '--all')
})

const inside = (script: string): string => podman.run('exec', 'coppice', 'sh', '-ec', script)

const work = (): void => {
  inside('git init -q -b main app && git -C app commit -q --allow-empty -m first')
  inside('coppice codebase add app')
  podman.documented('podman exec coppice coppice chat --codebase app --agent demo "fix the login bug"')
  inside('cd app && coppice chat --conversation cli-kept "fix the login" && coppice worktree create --issue 7')
  inside('printf work > /.coppice/worktrees/app/issue-7/unfinished')
  inside('cd app && coppice worktree create --issue 8 && printf too > /.coppice/worktrees/app/issue-8/removed')
  inside('cd app && coppice worktree remove issue-8 --force')
}

const expectWork = (): void => {
  expect(inside('cd app && coppice worktree list')).toContain('issue-7')
  expect(inside('cat /.coppice/worktrees/app/issue-7/unfinished')).toBe('work')
  expect(inside('cd app && coppice worktree restore issue-8')).toContain('Restored issue-8')
  expect(inside('cat /.coppice/worktrees/app/issue-8/removed')).toBe('too')
  expect(inside('cd app && coppice chat --conversation cli-kept /status')).toMatch(/thread-[0-9a-f]{8}/)
  expect(inside('cd app && coppice doctor')).toContain('No problems found.')
}

const backUp = (): void =>
  podman.documented(`
    podman exec coppice /opt/coppice/deploy/backup.sh /.coppice /tmp/backup
    podman exec coppice tar -C /tmp/backup -c . > home.tar
    podman exec coppice rm -r /tmp/backup
    podman exec coppice tar -C /home/node -c . > user.tar`)

const restore = (): void =>
  podman.documented(`
    podman volume create coppice-home
    podman volume create coppice-user
    podman run --rm -i -v coppice-home:/.coppice -v coppice-user:/home/node --entrypoint tar coppice -C /.coppice -x < home.tar
    podman run --rm -i -v coppice-home:/.coppice -v coppice-user:/home/node --entrypoint tar coppice -C /home/node -x < user.tar`)

test('compose.yaml runs the server; a backup taken while it runs is restored into empty volumes', async () => {
  const agent = { COPPICE_AGENT: 'demo' }
  podman.documented('podman-compose up -d server', agent)
  await becomesHealthy(podman, 'coppice')
  podman.documented('podman exec coppice coppice status')
  expect(podman.run('port', 'coppice')).toBe('4780/tcp -> 127.0.0.1:4780')
  expect((await fetch('http://127.0.0.1:4780/healthz')).status).toBe(200)
  work()
  expect(() => inside('/opt/coppice/deploy/backup.sh /.coppice /.coppice/backup')).toThrow(
    'would be copied into itself',
  )
  expect(inside('ls /.coppice')).not.toContain('backup')
  backUp()
  podman.documented('podman-compose down\npodman volume rm coppice-home coppice-user')
  restore()
  podman.documented('podman-compose up -d server', agent)
  await becomesHealthy(podman, 'coppice')
  podman.documented('podman exec coppice coppice doctor')
  expectWork()
  // A new container with the same volumes, as after an upgrade.
  podman.documented('podman-compose build server\npodman-compose down\npodman-compose up -d server', agent)
  await becomesHealthy(podman, 'coppice')
  expect(inside('cd app && coppice worktree list')).toContain('issue-8')
})

test('compose.yaml runs PostgreSQL beside the server; its dump is restored together with the files', async () => {
  const start = 'set -a && . ./.env && podman-compose up -d postgres server'
  writeFileSync(
    join(podman.workingDirectory, '.env'),
    'POSTGRES_PASSWORD=choose-a-password\n' +
      'COPPICE_DATABASE_URL=postgres://coppice:choose-a-password@postgres/coppice\n',
  )
  podman.documented(start)
  await becomesHealthy(podman, 'coppice')
  expect(inside('coppice status')).toMatch(/database +PostgreSQL/)
  work()
  podman.documented('podman exec coppice-postgres pg_dump -U coppice --format=custom coppice > coppice.dump')
  backUp()
  podman.documented('podman-compose down\npodman volume rm coppice-home coppice-user')
  podman.run('volume', 'rm', 'coppice-database')
  podman.documented('set -a && . ./.env && podman-compose up -d postgres')
  await becomesHealthy(podman, 'coppice-postgres')
  podman.documented(
    'podman exec -i coppice-postgres pg_restore -U coppice --dbname=coppice --exit-on-error < coppice.dump',
  )
  restore()
  podman.documented(start)
  await becomesHealthy(podman, 'coppice')
  expectWork()
})
