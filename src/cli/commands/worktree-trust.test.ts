import { expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { toSha } from '../../domain/names.ts'
import { plain } from '../../commands/views/view.ts'
import { trustText } from './worktree-trust.ts'

const view = { paint: plain, now: 0, userHome: undefined, commandText: (words: string) => words, columns: undefined }
const result = {
  environment: { branch: 'pr-7-review' } as IsolatedEnvironment,
  codebase: 'app',
  commit: toSha('c0ffee1'.padEnd(40, '0')),
  wasTrusted: false,
  copied: 0,
  linked: 0,
  ranSetup: false,
}
const trusted = 'Trusted pr-7-review at c0ffee1: agents there now use its settings.'

test.each([
  [{}, trusted],
  [{ copied: 1, linked: 2 }, `${trusted} Copied 1 file, created 2 links.`],
  [{ copied: 2, ranSetup: true }, `${trusted} Copied 2 files, ran setup.`],
  [{ wasTrusted: true }, 'pr-7-review is already trusted.'],
])('the answer to `worktree trust` says what happened: %j', (change, text) =>
  expect(trustText({ ...result, ...change }, view)).toBe(text),
)
