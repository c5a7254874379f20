import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Row } from './measure.ts'

/** The last measurement and its machine: figures can be measured one by one, each on a suitable machine. */
export type Result = { readonly rows: readonly Row[]; readonly machine: readonly string[] }

const file = fileURLToPath(new URL('results.json', import.meta.url))

export const readResults = (): Readonly<Record<string, Result | undefined>> =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, Result>) : {}

export const saveResult = (name: string, result: Result): void => {
  writeFileSync(file, `${JSON.stringify({ ...readResults(), [name]: result }, undefined, 1)}\n`)
}
