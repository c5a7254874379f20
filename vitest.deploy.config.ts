import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { defineConfig } from 'vitest/config'
import ordinary from './vitest.config.ts'

/** The programs that docs/deploy.md uses. A trial that silently skipped itself would look like one that passed. */
const needed = {
  podman: ['podman', '--version'],
  'podman-compose': ['podman-compose', '--help'],
  nginx: ['nginx', '-v'],
  caddy: ['caddy', 'version'],
  openssl: ['openssl', 'version'],
}
const missing = Object.entries(needed).flatMap(([name, [program = '', ...args]]) =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0 ? [] : [name],
)
if (missing.length > 0) {
  throw new Error(
    `the deployment trial needs ${missing.join(', ')}: install what is missing (apt-get install ${missing.join(' ')})`,
  )
}

/** The image, compose.yaml, the proxies and the backup of docs/deploy.md, with the real programs. Takes minutes. */
export default defineConfig({
  test: {
    ...ordinary.test,
    // Not in memory: images take gigabytes.
    env: { ...ordinary.test?.env, TMPDIR: tmpdir() },
    include: ['test/deploy/**/*.test.ts'],
    exclude: ['node_modules/**'],
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 900_000,
  },
})
