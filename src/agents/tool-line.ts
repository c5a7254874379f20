import { isAbsolute, relative } from 'node:path'

/** One thing that an agent does: how it is told when it worked, and how when it did not. */
export type Deed = { readonly done: string; readonly failed: string }

export const deed = (did: string, toDo: string, what: string): Deed => ({
  done: oneLine(`${did} ${what}`),
  failed: oneLine(`could not ${toDo} ${what}`),
})

export const ran = (command: string): Deed => deed('ran', 'run', firstLine(command))

export const edited = (paths: readonly string[], directory: string): Deed =>
  deed('edited', 'edit', paths.map((path) => within(path, directory)).join(', '))

/** As the user knows it: from the top of the tree. */
export const within = (path: string, directory: string): string => {
  if (!isAbsolute(path)) return path
  const inside = relative(directory, path)
  return inside === '' || inside.startsWith('..') ? path : inside
}

export const firstLine = (text: string): string => {
  const [first = '', ...rest] = text.trim().split('\n')
  return rest.length === 0 ? first : `${first} …`
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
