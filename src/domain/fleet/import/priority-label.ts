import { type Priority, toPriority } from '../item.ts'

/** Undefined unless the labels name exactly one priority: `P1`, `priority:high`, `priority/2`. */
export const priorityOfLabels = (labels: readonly string[]): Priority | undefined => {
  const given = new Set(labels.map(priorityOfLabel).filter((one) => one !== undefined))
  const [only] = given
  return given.size === 1 ? only : undefined
}

const priorityOfLabel = (label: string): Priority | undefined => {
  const name = label.trim().toLowerCase()
  const [, short] = /^p-?([0-4])$/.exec(name) ?? []
  const [, long = ''] = /^prio(?:rity)?\s?[-:/_\s]\s?(.+)$/.exec(name) ?? []
  const [, digit = short] = /^p?([0-4])$/.exec(long) ?? []
  return digit === undefined ? words.get(long) : toPriority(Number(digit))
}

const words: ReadonlyMap<string, Priority> = new Map([
  ['critical', 0],
  ['urgent', 0],
  ['high', 1],
  ['medium', 2],
  ['normal', 2],
  ['low', 3],
  ['lowest', 4],
  ['backlog', 4],
])
