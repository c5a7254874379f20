import { describe, expect, test } from 'vitest'
import { inOrder } from './order.ts'

const graph = (needs: Record<string, string>) =>
  new Map(Object.entries(needs).map(([name, words]) => [name, words === '' ? [] : words.split(' ')]))

describe('what waits for others comes after them,', () => {
  test('and everything else stays where it was', () => {
    expect(inOrder(graph({ c: '', a: 'b d', x: '', b: 'd', d: '' }))).toEqual({ order: ['c', 'd', 'b', 'a', 'x'] })
  })

  test('also what is no key of the graph, and from the given roots only', () => {
    expect(inOrder(graph({ a: 'z', b: '' }), ['a'])).toEqual({ order: ['z', 'a'] })
  })

  test('however long the chain is', () => {
    const long = new Map(Array.from({ length: 100_000 }, (_, n) => [n, [n + 1]]))
    const found = inOrder(long)
    expect('order' in found && [found.order[0], found.order.length]).toEqual([100_000, 100_001])
  })
})

test.each([
  [{ a: 'a' }, ['a']],
  [{ a: 'b', b: 'c', c: 'b' }, ['b', 'c']],
  [{ x: '', a: 'x b', b: 'x c', c: 'a' }, ['a', 'b', 'c']],
])('a circle is named: %j', (needs, circle) => {
  expect(inOrder(graph(needs))).toEqual({ circle })
})
