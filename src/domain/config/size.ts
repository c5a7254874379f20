import { AppError } from '../errors.ts'

/** Far more than anybody writes. YAML parsing is quadratic for some texts: a second for 100,000 characters. */
export const maxConfigLength = 32 * 1024

export const configTooLong = (file: string, length: number): AppError =>
  new AppError('config-invalid', `${file} is too large: ${length} bytes (limit: ${maxConfigLength})`, {
    remedy: 'shorten it, for example by moving long scripts into separate files',
  })
