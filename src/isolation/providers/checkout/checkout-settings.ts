import { privilegesOf, type Trust } from '../../../domain/trust.ts'
import { withoutLargeFiles } from '../../../git/large-files.ts'
import type { Setting } from '../../../git/neutral.ts'

/** For every git call that writes a worktree's files. */
export const checkoutSettings = (trust: Trust): readonly Setting[] =>
  privilegesOf(trust, false).largeFiles ? [] : withoutLargeFiles
