import { existsSync } from 'node:fs'
import { basename, join, normalize } from 'node:path'
import { chatCommands } from '../../commands/chat-table.ts'
import { firstWord } from '../../commands/table.ts'
import type { Codebase } from '../../domain/environment.ts'
import { listDirectory } from '../../process/files/list-directory.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import { shownPath } from '../../domain/text/raw-path.ts'
import type { ArchonCodebase } from '../../store/archon/archon.ts'
import type { CommandFile } from './advice.ts'
import type { ArchonRepoConfig } from './config-advice.ts'
import type { Planning } from './planning.ts'
import { hasControl } from './report.ts'

/** Names the commands that Archon has and `.coppice/commands/` doesn't. Only a commit brings them there. */
export const adviseOnCommands = async (
  { advice }: Planning,
  { name, checkoutPath }: Codebase,
  { commandPaths }: ArchonCodebase,
  config: ArchonRepoConfig | undefined,
): Promise<void> => {
  if (checkoutPath === undefined) return
  const folders = ['.archon/commands', ...(config?.commandsFolder === undefined ? [] : [config.commandsFolder])]
  const listed = (await Promise.all(folders.map((folder) => markdownBelow(checkoutPath, folder, 2)))).flat()
  // What Archon had loaded from anywhere else in the repository.
  const loaded = commandPaths.filter((path) => path.endsWith('.md') && existsSync(join(checkoutPath, path)))
  const files: CommandFile[] = []
  for (const file of new Set([...listed, ...loaded].filter(isInside))) {
    const called = nameHere(file)
    if (called === '' || existsSync(join(checkoutPath, '.coppice/commands', `${called}.md`))) continue
    const text = await readUntrustedText(join(checkoutPath, file), { maxBytes: 256 * 1024 }).catch(() => undefined)
    files.push({ file, name: called, clash: ours.has(called), positional: /\$[1-9]/.test(text ?? '') })
  }
  if (files.length > 0) advice.push({ kind: 'commands', codebase: name, files: files.slice(0, 100) })
}

const ours = new Set(chatCommands.flatMap(({ name, aliases = [] }) => [name, ...aliases].map(firstWord)))

/** Ours have lower-case letters, digits and `-` only. */
const nameHere = (file: string): string =>
  basename(file, '.md')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 50)

const isInside = (path: string): boolean =>
  !normalize(path).startsWith('..') && !path.startsWith('/') && !hasControl(path)

const markdownBelow = async (root: string, folder: string, depth: number): Promise<string[]> => {
  if (!isInside(folder)) return []
  // Missing, unreadable or huge: then there is nothing to name.
  const entries = await listDirectory(Buffer.from(join(root, folder)), { maxEntries: 500 }).catch(() => [])
  const found: string[] = []
  for (const entry of entries) {
    const name = shownPath(entry.name)
    const path = join(folder, name)
    if (entry.isFile() && name.endsWith('.md')) found.push(path)
    if (entry.isDirectory() && depth > 1 && !name.startsWith('.')) {
      found.push(...(await markdownBelow(root, path, depth - 1)))
    }
  }
  return found.toSorted()
}
