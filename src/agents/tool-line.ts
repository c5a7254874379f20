import { isAbsolute, relative } from 'node:path'

/** One action of an agent: while it happens, if it fails, and as something to be allowed. */
export type ToolLine = { readonly started: string; readonly failed: string; readonly wish: string }

/** `toolLine('running', 'run', 'npm test')` */
export const toolLine = (doing: string, infinitive: string, what: string): ToolLine => ({
  started: oneLine(`${doing} ${what}`),
  failed: oneLine(`couldn't ${infinitive} ${what}`),
  wish: oneLine(`${infinitive} ${what}`),
})

export const running = (command: string): ToolLine => toolLine('running', 'run', firstLine(command))

export const editing = (paths: readonly string[], directory: string): ToolLine =>
  toolLine('editing', 'edit', paths.map((path) => displayPath(path, directory)).join(', '))

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
