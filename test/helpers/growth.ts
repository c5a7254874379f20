import { cpuTimeOf } from './cpu-time.ts'

/** A text of about this many characters. */
export type TextOf = (size: number) => string

export const repeated =
  (unit: string, start = '', end = ''): TextOf =>
  (size) =>
    `${start}${unit.repeat(Math.ceil(size / unit.length))}${end}`

const small = 4_000
const times = 16
/** Linear work takes 16 times as long for 16 times the text, quadratic work 256 times. */
const most = 6 * times
/** Shorter work is measured by what else the machine does. */
const measurableMs = 1

/** Whether work on a text takes time by the length of the text, and not by its square. */
export const isLinear = (work: (text: string) => unknown, textOf: TextOf): boolean => {
  const [short, long] = [textOf(small), textOf(small * times)]
  // Each the best of several: a pause for something else only ever adds.
  const shortest = Math.max(measurableMs, Math.min(...[1, 2, 3].map(() => cpuTimeOf(() => work(short)))))
  return [1, 2, 3].some(() => cpuTimeOf(() => work(long)) < shortest * most)
}
