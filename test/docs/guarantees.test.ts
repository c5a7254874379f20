import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

test('every test that docs/guarantees.md names exists', () => {
  const lines = readFileSync(join(root, 'docs/guarantees.md'), 'utf8').split('\n')
  const named = lines.filter((line) => line.startsWith('|')).flatMap(namedIn)
  expect(named.length).toBeGreaterThan(80)
  expect(named.filter((one) => !exists(one)).map(({ file, name }) => `${file}: ${name}`)).toEqual([])
})

type Named = { readonly file: string; readonly name: string }

/** In a row, a file comes before the names of its tests: `test/x.test.ts` *the beginning of a name…* */
const namedIn = (row: string): Named[] => {
  let file = ''
  return [...row.matchAll(/`((?:src|test)\/[^`]+)`|(?<![*\w])\*([^*]+)\*(?![*\w])/g)].flatMap(([, path, name]) => {
    file = path ?? file
    return file === '' ? [] : [{ file, name: name ?? '' }]
  })
}

const exists = ({ file, name }: Named): boolean => {
  const path = join(root, file)
  if (!existsSync(path)) return globSync(file, { cwd: root }).length > 0 && name === ''
  if (name === '' || statSync(path).isDirectory()) return true
  const source = readFileSync(path, 'utf8')
    .replaceAll(/\\(['`])/g, '$1')
    .replaceAll(/\s+/g, ' ')
  return name.split('…').every((part) => source.includes(part.trim()))
}
