/** A child process of `parallel-creations`: warms up, reports ready, and creates on request. */
import { toRepoPath } from '../src/domain/names.ts'
import { makeSandbox } from '../test/helpers/repo.ts'
import { openWorld } from './stage.ts'

const [root = '', first = '', each = ''] = process.argv.slice(2)
const box = makeSandbox()
const world = await openWorld(box, root)
// The first query of a repository reads its configuration; a server has long done that.
await world.context.git.config({ commonDir: toRepoPath(world.codebase.repoPath) })

process.once('message', () => {
  void begin()
})
process.send?.('ready')

async function begin(): Promise<void> {
  const issues = Array.from({ length: Number(each) }, (_, i) => Number(first) + i)
  const outcomes = await Promise.allSettled(issues.map((issue) => world.create(issue)))
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))
  process.send?.(failures)
  await world.context.store.close()
  box[Symbol.dispose]()
}
