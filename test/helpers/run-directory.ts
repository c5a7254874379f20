import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const variable = 'COPPICE_TEST_RUN'

/** What the test files of one run share, or use to their end. A worker is killed at its end and cannot clean up. */
export const makeRunDirectory = (): (() => void) => {
  const directory = mkdtempSync(join(tmpdir(), 'coppice-run-'))
  process.env[variable] = directory
  return () => rmSync(directory, { recursive: true, force: true })
}

/** Made by the global set-up; for whoever runs without it, a benchmark, until this process ends. */
export const runDirectory = (): string => {
  if (process.env[variable] === undefined) process.once('exit', makeRunDirectory())
  return process.env[variable] ?? ''
}
