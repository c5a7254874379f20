import type { UncommittedWork } from '../../domain/removal/uncommitted.ts'
import { counted } from '../../domain/text/words.ts'

/** `1 changed, 2 untracked`; empty if it is clean. */
export const describeUncommitted = (dirty: UncommittedWork): string =>
  [
    ...(dirty.changed > 0 ? [`${dirty.changed} changed`] : []),
    ...(dirty.untracked > 0 ? [`${dirty.untracked} untracked`] : []),
    ...(dirty.hidden > 0 ? [`${dirty.hidden} changed but hidden`] : []),
    ...(dirty.submodules > 0 ? [`${counted(dirty.submodules, 'submodule')} changed`] : []),
    ...(dirty.unpushed > 0 ? [`${counted(dirty.unpushed, 'submodule')} not pushed`] : []),
    ...dirty.halfDone.map((operation) => `${operation} in progress`),
  ].join(', ')
