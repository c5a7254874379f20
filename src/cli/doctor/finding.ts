/*
 * What `coppice doctor` checks. In: the home and its codebases. Out: findings, each fine, a note, or a problem with a
 * remedy.
 */
import { UnusableFileError } from '../../domain/errors.ts'
import { coppice, type Remedy, remedy } from '../../domain/remedy.ts'

export const fix = 'coppice doctor --fix'

/** One thing the doctor looked at. A problem wants somebody to act; a note is only worth knowing. */
export type Finding = {
  readonly state: 'ok' | 'note' | 'problem'
  readonly about: string
  readonly detail: string
  /** What to do about it. */
  readonly remedy?: Remedy
  /** The file that is in the way of every look, so that it is reported once. */
  readonly file?: string | undefined
}

export const ok = (about: string, detail: string): Finding => ({ state: 'ok', about, detail })
export const note = (about: string, detail: string, way?: Remedy): Finding => ({
  state: 'note',
  about,
  detail,
  ...(way !== undefined && { remedy: way }),
})
export const problem = (about: string, detail: string, way: Remedy, file?: string): Finding => ({
  state: 'problem',
  about,
  detail,
  remedy: way,
  file,
})

/** A look that fails is a finding itself: the doctor never stops at the first thing that is broken. */
export const look = async (about: string, question: () => Promise<Finding[]>): Promise<Finding[]> => {
  try {
    return await question()
  } catch (error) {
    const file = error instanceof UnusableFileError ? error.path : undefined
    const why = error instanceof Error ? error.message : String(error)
    return [problem(about, `couldn't check: ${why}`, remedy`fix that, then run ${coppice('doctor')} again`, file)]
  }
}
