import { createHash } from 'node:crypto'
import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Inside } from './scene.ts'

/** Changes a file so that git calls it clean: the index has its new times, and the commit's content. */
export const forgeIndex = (tree: Inside, file: string, content: string): void => {
  const path = join(tree.git('rev-parse', '--absolute-git-dir'), 'index')
  const shaOf = (): Buffer => Buffer.from(tree.git('rev-parse', `:${file}`), 'hex')
  const before = shaOf()
  tree.write(file, content)
  // Git reads a file again that isn't older than the index.
  utimesSync(join(tree.path, file), 1, 1)
  tree.git('add', file)
  const index = readFileSync(path)
  before.copy(index, index.indexOf(shaOf()))
  const body = index.subarray(0, -20)
  writeFileSync(path, Buffer.concat([body, createHash('sha1').update(body).digest()]))
  expect(tree.git('status', '--porcelain', '--ignore-submodules')).toBe('')
}
