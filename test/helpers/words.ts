import { faultMessage } from '../../src/commands/views/failure.ts'
import { describeBranchNote } from '../../src/commands/views/merged.ts'
import { describeNotices } from '../../src/commands/views/notices.ts'
import { describeRemedy } from '../../src/commands/views/remedy.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import { isAppError } from '../../src/domain/errors.ts'
import type { Notice } from '../../src/domain/notice.ts'
import type { Remedy } from '../../src/domain/remedy.ts'
import type { BranchNote } from '../../src/domain/removal/branch-note.ts'

/** What a terminal says about values, for tests that read the words. */

export const said = (notices: readonly Notice[]): string[] => describeNotices(notices, asProgram)

/** The same of an answer that has notices, and perhaps a branch. */
export const inWords = <T extends { readonly notices: readonly Notice[] }>(
  answer: T,
): Omit<T, 'notices'> & { readonly notices: string[] } => ({ ...answer, notices: said(answer.notices) })

export const noteInWords = (note: BranchNote | string): string => describeBranchNote(note)

export const messageIn = (error: unknown): string =>
  isAppError(error) ? faultMessage(error, asProgram) : error instanceof Error ? error.message : String(error)

/** What a terminal says to do about an error or a finding of `doctor`; empty when there is nothing. */
export const remedyIn = (about: { readonly remedy?: Remedy | undefined } | undefined): string =>
  about?.remedy === undefined ? '' : describeRemedy(about.remedy, asProgram)
