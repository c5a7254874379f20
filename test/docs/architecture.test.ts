import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** A row names a file by its path, or by its end once the folder is known: `runs/run.ts`, then `turns.ts`. */
test.each(['docs/architecture.md', 'CONTRIBUTING.md'])('every file and folder that %s names exists', (page) => {
  const paths = globSync(['src/**/*', 'test/**/*', 'docs/**/*', 'deploy/*', 'scripts/*', 'bench/*'], { cwd: root })
  const named = readFileSync(join(root, page), 'utf8').matchAll(
    /`(?!\.)((?:[\w.-]+\/)+|(?:[\w.-]+\/)*[\w-]+(?:\.[\w-]+)*\.ts)`/g,
  )
  const missing = [...named].filter(([, name = '']) => {
    const end = `/${name.replace(/\/$/, '')}`
    return !paths.some((path) => `/${path}`.endsWith(end))
  })
  expect(missing.map(([, name]) => name)).toEqual([])
})
