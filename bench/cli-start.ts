import { join } from 'node:path'
import { installed } from './installed.ts'
import { interleaved, ratioRow } from './measure.ts'
import { plainGit } from './plain-git.ts'
import type { Bench } from './stage.ts'

export const cliStart: Bench = {
  name: 'cli-start',
  title: 'the built command line',
  description:
    'Coppice: `coppice worktree list --json` from start to exit, as an installed package runs it (`bin/coppice.js` and the built `dist/`), in a repository of 3,000 files with 3 environments made by the same program, without a server. Baseline: `node -e 0`. The figure with a target uses trees in which `git status` has run once, as people, editors and commits do; in new trees every file is as young as the index, so git reads them all again. Both use the same Node binary and environment.',
  measure: async (stage) => {
    const root = stage.copy(3_000)
    const cwd = join(root, 'project')
    const coppice = installed(stage, { cwd, home: join(root, 'home') })
    for (const issue of [1, 2, 3]) await coppice('worktree', 'create', '--issue', `${issue}`)
    const listed = await coppice('worktree', 'list', '--json')
    const missing = [1, 2, 3].filter((issue) => !listed.includes(`"issue-${issue}"`))
    if (missing.length > 0) throw new Error(`${missing.length} of 3 environments are missing from the list: ${listed}`)
    const { env } = stage.box
    const sides = {
      ours: { run: async () => void (await coppice('worktree', 'list', '--json')) },
      raw: { run: async () => void (await stage.start({ program: process.execPath, args: ['-e', '0'], cwd, env })) },
    }
    const justMade = await interleaved(sides, { rounds: 11 })
    const trees = plainGit(stage.box, cwd, 'worktree', 'list', '--porcelain').matchAll(/^worktree (.+)$/gm)
    for (const [, tree = ''] of trees) plainGit(stage.box, tree, 'status')
    const settled = await interleaved(sides, { rounds: 21 })
    return [
      ratioRow('`worktree list --json` of the built CLI, against `node -e 0`', settled, 4),
      ratioRow('the same, new trees', justMade),
    ]
  },
}
