import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { interleaved, ratioRow } from './measure.ts'
import { plainGit } from './plain-git.ts'
import type { Bench } from './stage.ts'

const program = fileURLToPath(new URL('../bin/coppice.js', import.meta.url))
const built = fileURLToPath(new URL('../dist/main.js', import.meta.url))

export const cliStart: Bench = {
  name: 'cli-start',
  title: 'the built command line',
  description:
    'Coppice: `coppice worktree list --json` from start to exit, as an installed package runs it (`bin/coppice.js` and the built `dist/`), in a repository of 3,000 files with 3 environments made by the same program, without a server. Baseline: `node -e 0`. The figure with a target uses trees in which `git status` has run once, as people, editors and commits do; in new trees every file is as young as the index, so git reads them all again. Both use the same Node binary and environment.',
  measure: async (stage) => {
    if (!existsSync(built)) throw new Error('dist/ is missing: run `npm run build` first')
    const root = stage.copy(3_000)
    const cwd = join(root, 'project')
    const env = { ...stage.box.env, COPPICE_HOME: join(root, 'home'), SPARES: '0' }
    const node = (...args: string[]): string =>
      execFileSync(process.execPath, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    for (const issue of [1, 2, 3]) node(program, 'worktree', 'create', '--issue', `${issue}`)
    const listed = node(program, 'worktree', 'list', '--json')
    const missing = [1, 2, 3].filter((issue) => !listed.includes(`"issue-${issue}"`))
    if (missing.length > 0) throw new Error(`${missing.length} of 3 environments are missing from the list: ${listed}`)
    const timed = async (...args: string[]): Promise<void> =>
      void (await stage.start({ program: process.execPath, args, cwd, env }))
    const sides = {
      ours: { run: () => timed(program, 'worktree', 'list', '--json') },
      raw: { run: () => timed('-e', '0') },
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
