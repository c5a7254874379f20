#!/usr/bin/env node
// PID 1 of the container image. /proc/1/environ stays readable for every program of the same user, agents included, and
// tini, which has to be PID 1 to collect orphaned processes, can't clear it. So tini is started without the secrets;
// coppice reads them from a private file, which it deletes (src/main/take-environment.ts).
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const harmless = /^(?:PATH|HOME|LANG|LC_\w+|TZ|TERM|NODE_EXTRA_CA_CERTS|NODE_OPTIONS|SSL_CERT_FILE|SSL_CERT_DIR)$/

const file = join(mkdtempSync(join(tmpdir(), 'coppice-environment-')), 'variables.json')
writeFileSync(file, JSON.stringify(process.env), { mode: 0o600, flag: 'wx' })
const kept = Object.fromEntries(Object.entries(process.env).filter(([name]) => harmless.test(name)))
process.removeAllListeners('warning') // "execve is an experimental feature"
process.execve('/usr/bin/tini', ['tini', '--', 'coppice', ...process.argv.slice(2)], {
  ...kept,
  COPPICE_ENVIRONMENT_FILE: file,
})
