import { expect, test } from 'vitest'
import { createSecrets } from '../process/redaction/redact.ts'
import type { AgentEvent } from './agent.ts'
import { createReply } from './reply.ts'

const secrets = createSecrets(['correct horse battery staple'])

const sayAll = (limit: number, pieces: readonly string[]): { text: string; events: string[] } => {
  const events: AgentEvent[] = []
  const reply = createReply(limit, { emit: (event) => events.push(event), secrets })
  for (const piece of pieces) reply.add(piece)
  const text = reply.end()
  return { text, events: events.map((event) => (event.type === 'text' ? event.text : event.type)) }
}

test('what fits is said as it comes', () => {
  expect(sayAll(100, ['one ', 'two ', '', 'three'])).toEqual({
    text: 'one two three',
    events: ['one ', 'two ', 'three'],
  })
})

test('a reply of exactly the limit is whole', () => {
  const { text } = sayAll(40, ['0123456789'.repeat(2), '0123456789'.repeat(2)])
  expect(text).toBe('0123456789'.repeat(4))
})

test('beyond the limit the middle is left out, and how much of it is told', () => {
  const { text, events } = sayAll(40, ['a'.repeat(25), 'b'.repeat(100), 'c'.repeat(10)])
  expect(text).toBe(events.join(''))
  expect(text).toBe(`${'a'.repeat(25)}${'b'.repeat(5)}\n\n[… 95 bytes of output omitted …]\n\n${'c'.repeat(10)}`)
})

test('no character is cut in half, wherever the limit falls', () => {
  for (let limit = 0; limit < 40; limit += 1) {
    const { text } = sayAll(limit, ['aü€😀'.repeat(5), 'ü€😀'.repeat(7)])
    expect(text.isWellFormed()).toBe(true)
    expect(text).not.toContain('\uFFFD')
  }
})

test('a NUL, which no database and no platform takes, is left out', () => {
  expect(sayAll(100, ['a\0b', '\0']).text).toBe('ab')
})

test('a secret is hidden before the reply is cut, so that no half of it is left at the cut', () => {
  for (let before = 0; before < 60; before++) {
    const { text } = sayAll(40, ['x'.repeat(before), ' correct horse', ' battery staple ', 'y'.repeat(60)])
    expect(text).not.toMatch(/correct|horse|battery|staple/)
  }
})

test('a tool line is hidden before it is cut, and comes after what was said before it', () => {
  const events: AgentEvent[] = []
  const reply = createReply(1_000, { emit: (event) => events.push(event), secrets })
  reply.add('let me look')
  reply.tool(`ran ${'x'.repeat(100)} correct horse battery staple`)
  reply.tool(`ran ${'x'.repeat(200)}`)
  expect(events).toEqual([
    { type: 'text', text: 'let me ' },
    { type: 'text', text: 'look' },
    { type: 'tool', line: `ran ${'x'.repeat(100)} [hidden]` },
    { type: 'tool', line: `ran ${'x'.repeat(115)}…` },
  ])
})
