import { AppError } from '../../domain/errors.ts'

/** The command was called in a way that it cannot be: what is wrong with it, and what would be right. */
export const usage = (message: string, remedy: string): AppError => new AppError('usage', message, { remedy })
