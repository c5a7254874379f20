import { expect, test } from 'vitest'
import { readDelivery } from './delivery.ts'

const read = (body: string, contentType: string, event = 'issue_comment') =>
  readDelivery(
    { verify: () => Promise.resolve(true) },
    {
      headers: {
        'content-type': contentType,
        'x-hub-signature-256': 'sha256=right',
        'x-github-event': event,
        'x-github-delivery': 'd-1',
      },
      body: new TextEncoder().encode(body),
    },
  )

const form = 'application/x-www-form-urlencoded'
const json = 'application/json'
const forged = encodeURIComponent('{"forged":true}')
const comment = JSON.stringify({ issue: {}, comment: { body: `hello &payload=${forged}&` } })

test.each([form, json, ''])(
  'the unsigned content type %j does not change what a delivery says',
  async (contentType) => {
    expect(await read(comment, contentType)).toMatchObject({ payload: JSON.parse(comment) as unknown })
    const asForm = new URLSearchParams({ payload: comment }).toString()
    expect(await read(asForm, contentType)).toMatchObject({ payload: JSON.parse(comment) as unknown })
  },
)

test.each([
  `a=b&payload=${forged}`,
  `payload=${forged}&payload=%7B%7D`,
  `&payload=${forged}`,
  'payload=',
  'payload=1',
  '[]',
  '"{}"',
  'null',
  ' {}',
  '{',
])('a body that is neither a JSON object nor a form with one is refused: %j', async (body) => {
  expect(await read(body, form)).toMatchObject({ status: 400 })
  expect(await read(body, json)).toMatchObject({ status: 400 })
})

const shapes = {
  issues: { issue: {} },
  issue_comment: { issue: { pull_request: {} }, comment: {} },
  pull_request: { pull_request: {}, number: 1 },
  pull_request_review: { pull_request: {}, review: {} },
  pull_request_review_comment: { pull_request: {}, comment: {} },
}

test.each(Object.entries(shapes))('a payload of %s is read under no other event', async (own, payload) => {
  const taken = await Promise.all(
    Object.keys(shapes).map(async (event) =>
      'event' in (await read(JSON.stringify(payload), json, event)) ? event : [],
    ),
  )
  expect(taken.flat()).toEqual([own])
})

test.each([
  ['pull_request', { pull_request: {}, thread: {} }],
  ['issue_comment', { issue: {}, comment: {}, pull_request: {} }],
  ['issue_comment', { discussion: {}, comment: {} }],
  ['issues', { issue: null }],
  ['issues', {}],
])('a delivery of %s that holds %j is refused', async (event, payload) => {
  expect(await read(JSON.stringify(payload), json, event)).toMatchObject({ status: 400 })
})
