import { AppError } from '../../domain/errors.ts'
import type { Remedy } from '../../domain/remedy.ts'

/** Wrong usage: what is wrong, and how to fix it. */
export const usage = (message: string, remedy: Remedy): AppError => new AppError('usage', message, { remedy })
