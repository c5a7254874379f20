/*
 * What `coppice doctor` checks. In: the home and its codebases. Out: findings, each fine, a note, or a problem with a
 * remedy.
 */
import { UnusableFileError } from '../../domain/errors.ts'
import { coppice, type Remedy, remedy } from '../../domain/remedy.ts'

export const fix = 'coppice doctor --fix'

/** One result of the doctor. A problem needs action; a note is only information. */
export type Finding = {
  readonly state: 'ok' | 'note' | 'problem'
  readonly about: string
  readonly detail: string
  /** How to fix it. */
  readonly remedy?: Remedy
  /** The file that blocks every check, so that it is reported once. */
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

/** A failed check is itself a finding: the doctor never stops at the first problem. */
export const look = async (about: string, question: () => Promise<Finding[]>): Promise<Finding[]> => {
  try {
    return await question()
  } catch (error) {
    const file = error instanceof UnusableFileError ? error.path : undefined
    const why = error instanceof Error ? error.message : String(error)
    return [problem(about, `couldn't check: ${why}`, remedy`fix that, then run ${coppice('doctor')} again`, file)]
  }
}
