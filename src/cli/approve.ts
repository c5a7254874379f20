import type { ApprovalQuestion } from '../isolation/context.ts'
import { printable } from '../commands/views/view.ts'

export type Asker = {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  readonly signal: AbortSignal
  readonly before: () => void
}

/** Asks on a terminal whether the repository's own commands may run. Anything but yes means no. */
export const createApprove =
  ({ input, output, signal, before }: Asker) =>
  async ({ codebase, commands, forks }: ApprovalQuestion): Promise<boolean> => {
    before()
    const { createInterface } = await import('node:readline/promises')
    const lines = commands.map((line) => `  ${printable(line)}\n`).join('')
    if (commands.length > 0) output.write(`${codebase} wants to run these commands in its worktrees:\n${lines}`)
    if (forks)
      output.write(`${codebase} sets worktree.allowForks: pull requests from forks get setup and copied files too.\n`)
    const asking = createInterface({ input, output })
    try {
      const answer = await asking.question('Allow this until it changes? [y/N] ', { signal })
      return /^y(?:es)?$/i.test(answer.trim())
    } catch {
      return false
    } finally {
      asking.close()
    }
  }
