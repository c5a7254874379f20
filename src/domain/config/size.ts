import { AppError } from '../errors.ts'

/** Far more than anybody writes. Parsing YAML takes quadratic time for some texts: a second for 100,000 characters. */
export const maxConfigLength = 32 * 1024

export const tooLongConfig = (file: string, length: number): AppError =>
  new AppError('config-invalid', `${file} is too large: ${length} bytes (limit: ${maxConfigLength})`, {
    remedy: 'make it smaller; long scripts belong in files of their own',
  })
