import { assert, constantFrom, integer, property, string } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { splitReply } from './split.ts'

describe('a long reply', () => {
  test('that fits is one message, and without a limit it always fits', () => {
    expect(splitReply('short', 10)).toEqual(['short'])
    expect(splitReply('x'.repeat(100_000), undefined)).toHaveLength(1)
  })

  test('is cut between paragraphs, then lines, then words', () => {
    expect(splitReply('one one one\n\ntwo two two', 16)).toEqual(['one one one', 'two two two'])
    expect(splitReply('one one one\ntwo two two', 16)).toEqual(['one one one', 'two two two'])
    expect(splitReply('alpha beta gamma delta', 16)).toEqual(['alpha beta', 'gamma delta'])
  })

  test('closes a code block that has to be cut and opens it again with its language', () => {
    const code = Array.from({ length: 12 }, (_, n) => `const a${n} = ${n}`).join('\n')
    const parts = splitReply(`Look:\n\n\`\`\`ts\n${code}\n\`\`\`\nDone.`, 80)
    expect(parts.length).toBeGreaterThan(2)
    expect(parts.filter((part) => (part.match(/^```/gm) ?? []).length % 2 === 1)).toEqual([])
    for (const part of parts.slice(1, -1)) expect(part).toMatch(/^```ts\n/)
    const lines = parts.flatMap((part) => part.split('\n')).filter((line) => line.startsWith('const'))
    expect(lines.join('\n')).toBe(code)
  })

  test('keeps the indentation of code after a cut', () => {
    const code = Array.from({ length: 10 }, (_, n) => `    indented ${n}`).join('\n')
    const parts = splitReply(`\`\`\`\n${code}\n\`\`\``, 60)
    const lines = parts.flatMap((part) => part.split('\n')).filter((line) => line.includes('indented'))
    expect(lines.join('\n')).toBe(code)
  })

  test('never exceeds the limit, never tears a character, and loses nothing but space', () => {
    const anything = string({ unit: constantFrom('a', 'b', ' ', '\n', '\n\n', '😀', '```\n', 'word', '`') })
    assert(
      property(anything, integer({ min: 45, max: 90 }), (text, limit) => {
        const parts = splitReply(text, limit)
        for (const part of parts) {
          expect(part.length).toBeLessThanOrEqual(limit)
          expect(part.isWellFormed()).toBe(true)
        }
        const letters = (all: string): string => all.replaceAll(/[\s`]/g, '')
        expect(letters(parts.join(''))).toBe(letters(text))
      }),
      { numRuns: 500 },
    )
  })
})
