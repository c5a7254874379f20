import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Stage } from './stage.ts'

const program = fileURLToPath(new URL('../bin/coppice.js', import.meta.url))
const built = fileURLToPath(new URL('../dist/main.js', import.meta.url))

/** Runs `coppice` as an installed package does. */
export const installed = (
  stage: Pick<Stage, 'box' | 'start'>,
  { cwd, home }: { readonly cwd: string; readonly home: string },
): ((...args: string[]) => Promise<string>) => {
  if (!existsSync(built)) throw new Error('dist/ is missing: run `npm run build` first')
  const env = { ...stage.box.env, COPPICE_HOME: home }
  return (...args) => stage.start({ program: process.execPath, args: [program, ...args], cwd, env })
}
