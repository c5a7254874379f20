import { describe, expect, test } from 'vitest'
import { collisions } from './in-the-way.ts'

const file = (path: string) => ({ path, isSubmodule: false })
const submodule = (path: string) => ({ path, isSubmodule: true })
const exact = { ignoresCase: false }

describe('what a move to a commit would overwrite or delete', () => {
  test.each([
    ['the same path', ['a/b'], file('a/b'), ['a/b']],
    ['a path below it', ['a/'], file('a/b/c'), ['a/']],
    ['a path above it', ['a/b/c'], file('a'), ['a']],
    ['a path beside it', ['a/b', 'a/c/'], file('a/bb'), []],
    ['a path that begins with its name', ['a/'], file('ab'), []],
    ['a submodule in its place', ['a/'], submodule('a'), ['a']],
    [
      'a name with an accent, written in another way',
      ['caf\u00c3\u00a9/'],
      file('cafe\u00cc\u0081'),
      ['cafe\u00cc\u0081'],
    ],
    ['a name in another case', ['Ign/'], file('ign'), []],
  ])('%s', async (_, files, coming, found) => {
    expect(await collisions({ files, submodules: [] }, [coming], exact)).toEqual(found)
  })

  test('on a disk that ignores case, a name in another case', async () => {
    expect(await collisions({ files: ['Ign/a'], submodules: [] }, [file('iGN')], { ignoresCase: true })).toEqual([
      'iGN',
    ])
  })

  test('a submodule, unless it stays one', async () => {
    const here = { files: ['lib/a.log', 'lib'], submodules: ['lib'] }
    const found = [submodule('lib'), file('lib'), file('lib/f'), submodule('lib/deep')].map((one) =>
      collisions(here, [one], exact),
    )
    expect(await Promise.all(found)).toEqual([[], ['lib'], ['lib'], ['lib']])
  })
})
