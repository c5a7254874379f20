import { AppError } from '../../domain/errors.ts'
import type { Remedy } from '../../domain/remedy.ts'

/** The command was called in a way that it cannot be: what is wrong with it, and what would be right. */
export const usage = (message: string, remedy: Remedy): AppError => new AppError('usage', message, { remedy })
