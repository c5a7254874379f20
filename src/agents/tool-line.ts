import { isAbsolute, relative } from 'node:path'

/** One action of an agent, worded for success and for failure. */
export type ToolLine = { readonly done: string; readonly failed: string }

export const toolLine = (did: string, infinitive: string, what: string): ToolLine => ({
  done: oneLine(`${did} ${what}`),
  failed: oneLine(`couldn't ${infinitive} ${what}`),
})

export const ran = (command: string): ToolLine => toolLine('ran', 'run', firstLine(command))

export const edited = (paths: readonly string[], directory: string): ToolLine =>
  toolLine('edited', 'edit', paths.map((path) => displayPath(path, directory)).join(', '))

/** Relative to the worktree, as the user knows it. */
export const displayPath = (path: string, directory: string): string => {
  if (!isAbsolute(path)) return path
  const inside = relative(directory, path)
  return inside === '' || inside.startsWith('..') ? path : inside
}

export const firstLine = (text: string): string => {
  const [first = '', ...rest] = text.trim().split('\n')
  return rest.length === 0 ? first : `${first} …`
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
