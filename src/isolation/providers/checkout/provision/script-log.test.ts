import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { toEnvironmentId } from '../../../../domain/names.ts'
import { openScriptLog } from './script-log.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'coppice-test-'))
})
afterEach(() => rmSync(home, { recursive: true }))

const openLog = () => openScriptLog(home, 'setup', toEnvironmentId('e1'))

describe('the log of a script', () => {
  it('never writes into the file that gets its descriptor next', async () => {
    const log = await openLog()
    log.write('in time\n')
    log.close()
    const next = openSync(join(home, 'next'), 'w')
    log.write('late\n')
    closeSync(next)
    expect(readFileSync(join(home, 'next'), 'utf8')).toBe('')
    expect(readFileSync(log.path, 'utf8')).toBe('in time\n')
  })

  it('ends before it can fill the disk, and says so', async () => {
    const log = await openLog()
    const megabyte = 'x'.repeat(1024 * 1024)
    for (let i = 0; i < 60; i++) log.write(megabyte)
    log.check()
    log.close()
    const text = readFileSync(log.path, 'utf8')
    expect(text.length).toBeLessThan(51 * 1024 * 1024)
    expect(text).toMatch(/the rest was not kept/)
  })

  it('begins anew for each run', async () => {
    for (const text of ['first', 'second']) {
      const log = await openLog()
      log.write(text)
      log.close()
    }
    expect(readFileSync(join(home, 'logs/setup/e1.log'), 'utf8')).toBe('second')
  })
})
