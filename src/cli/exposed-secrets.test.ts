import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { exposedSecrets } from './exposed-secrets.ts'

test.each([
  ['postgres://u:pass@db/x', true],
  ['postgres://db/x?user=u&password=pass', true],
  ['postgres://db/x', false],
])('a config.yaml that others can read is reported when its database URL has a password: %s', (databaseUrl, isTold) => {
  const home = mkdtempSync(join(tmpdir(), 'coppice-test-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  const file = join(home, 'config.yaml')
  writeFileSync(file, `database: { url: "${databaseUrl}" }\n`)
  chmodSync(file, 0o644)
  const settings = { databaseUrl } as Parameters<typeof exposedSecrets>[0]['settings']
  expect(exposedSecrets({ home, settings })?.problem).toBe(
    isTold ? `other users can read the secrets in ${file}` : undefined,
  )
  chmodSync(file, 0o600)
  expect(exposedSecrets({ home, settings })).toBeUndefined()
})
