import { expect, test } from 'vitest'
import { hintsInText } from './thread-hints.ts'

const codebase = { github: 'acme/app', baseBranch: 'stable' }
const pull = 'https://github.com/acme/app/pull'

test.each<[string, object]>([
  [`finish ${pull}/9 please`, { linkedPRs: [9] }],
  [`see <${pull}/9/files#diff-1>, again ${pull}/9`, { linkedPRs: [9] }],
  [`either ${pull}/9 or ${pull}/10`, {}],
  ['https://github.com/other/app/pull/9', {}],
  [`${pull}/9x ${pull}/09`, {}],
  ['#9', {}],
  ['go on with branch fix/login.', { suggestedBranch: 'fix/login' }],
  ['Branch: `wip`', { suggestedBranch: 'wip' }],
  ['on the `wip` branch, please', { suggestedBranch: 'wip' }],
  ['https://github.com/acme/app/tree/fix/login', { suggestedBranch: 'fix/login' }],
  ['https://github.com/other/app/tree/fix/login', {}],
  ['branch off and fix it, the branch is broken, branch. Then', {}],
  ['branch fix-1 or branch fix-2', {}],
  ['branch `main`, branch `stable`', {}],
  ['branch ../../etc', {}],
  [`branch fix-9, which is ${pull}/9`, { linkedPRs: [9], suggestedBranch: 'fix-9' }],
])('the first message of a thread says plainly what it is about, or nothing: %s', (text, hints) => {
  expect(hintsInText(text, codebase)).toEqual(hints)
})

test('without a repository on a forge, an address says nothing', () => {
  expect(hintsInText(`${pull}/9`, { github: undefined, baseBranch: undefined })).toEqual({})
})
