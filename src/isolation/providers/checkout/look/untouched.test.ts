import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeSandbox } from '../../../../../test/helpers/repo.ts'
import { writeToken } from '../../../../git/admin-dir.ts'
import { isUnusedSpare, stampToken } from './untouched.ts'

test('what is written in the same tick as the token counts as a change, and what git made before does not', async () => {
  using box = makeSandbox()
  const repo = box.repo()
  // The clock of a file system ticks every few milliseconds.
  for (let round = 0; round < 20; round += 1) {
    const tree = repo.worktree(`spare-${round}`, '--detach')
    await writeToken(tree.gitDir, 'spare:1')
    // As if git had written it in the same tick.
    if (round % 2 === 0) utimesSync(join(tree.gitDir, 'index'), new Date(), new Date())
    await stampToken(tree)
    const asMade = await isUnusedSpare(tree, { files: true })
    await writeToken(tree.gitDir, 'spare:1')
    writeFileSync(join(tree.path, round % 2 === 0 ? 'new' : 'README'), 'theirs\n')
    expect([round, asMade, await isUnusedSpare(tree, { files: true })]).toEqual([round, true, false])
  }
})
