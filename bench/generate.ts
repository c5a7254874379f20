import { dirname } from 'node:path'
import { generateRepository } from './repository.ts'

/** `node generate.ts <path> <files>`: generates a repository in a separate process. */
const [path = '', files = ''] = process.argv.slice(2)
const env = Object.fromEntries(
  Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
)
generateRepository({ root: dirname(path), env }, path, Number(files))
