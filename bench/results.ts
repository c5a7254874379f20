import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Row } from './measure.ts'

/** What was measured last, and on what: figures may be measured one by one, each where it means something. */
export type Result = { readonly rows: readonly Row[]; readonly machine: readonly string[] }

const file = fileURLToPath(new URL('results.json', import.meta.url))

export const results = (): Readonly<Record<string, Result | undefined>> =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, Result>) : {}

export const keep = (name: string, result: Result): void => {
  writeFileSync(file, `${JSON.stringify({ ...results(), [name]: result }, undefined, 1)}\n`)
}
