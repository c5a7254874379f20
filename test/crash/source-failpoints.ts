import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folders that only a message goes through. Everything else is swept without one. */
const roomsOfMessages: readonly string[] = ['conversations', 'main', 'runs']

const partOf = (folder: string): 'of messages' | 'of the fleet' | 'others' =>
  folder === 'fleet' ? 'of the fleet' : roomsOfMessages.includes(folder) ? 'of messages' : 'others'

/** The literal names of failpoints in the source, as they are written there, below these folders or outside of them. */
export const failpointsIn = (part: ReturnType<typeof partOf>): string[] => {
  const source = join(import.meta.dirname, '../../src')
  return readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .filter((file) => partOf(file.split('/')[0] ?? '') === part)
    .flatMap((file) => [...readFileSync(join(source, file), 'utf8').matchAll(/failpoint\(\s*['"`]([^'"`]+)['"`]/g)])
    .map(([, name = '']) => name)
}
