import { toCodebaseId } from '../../domain/names.ts'
import { keepSpares } from '../../isolation/environments.ts'
import { command } from '../../commands/command.ts'

/** Started in the background after a creation, so that the next one is a rename. Its output isn't read. */
export const keepSparesCommand = command<number>({
  run: async (call) => {
    const { context } = await call.open()
    const codebase = await context.store.codebases.get(toCodebaseId(call.words[0] ?? ''))
    return codebase === undefined ? 0 : keepSpares(context, codebase)
  },
  toText: () => '',
  toJson: (made) => ({ made }),
})
