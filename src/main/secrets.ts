import { existsSync, statSync } from 'node:fs'
import type { Env } from '../domain/config/config.ts'
import { isSecretName, passwordsIn } from '../process/redaction/secret-names.ts'
import { readToken, tokenFile } from '../server/token-file.ts'

/** The values of variables with secret names, and every password in a URL. */
export const environmentSecrets = (env: Env): string[] =>
  Object.entries(env).flatMap(([name, value = '']) => [
    ...(isSecretName(name) && !isPath(value) ? [value] : []),
    ...passwordsIn(value),
  ])

/** `GITHUB_TOKEN_FILE=/run/secrets/github` holds a path, not the secret. */
const isPath = (value: string): boolean => /^~?\//.test(value) && (value.startsWith('~') || existsSync(value))

/** The same for `config.yaml`, valid or not: an error may quote it. */
export const configSecrets = async (text: string): Promise<string[]> => {
  const { parseDocument } = await import('../domain/yaml.ts')
  try {
    return secretsUnder('', parseDocument(text).toJS({ maxAliasCount: 50 }))
  } catch {
    return [...text.matchAll(/(?<![\w-])([\w-]+)["']?[ \t]*:[ \t]*["']?([^\s"'#,}]+)/g)].flatMap(
      ([, name = '', value = '']) => (isSecretName(name) ? [value] : passwordsIn(value)),
    )
  }
}

const secretsUnder = (name: string, value: unknown): string[] => {
  if (typeof value === 'string' || typeof value === 'number') {
    const text = String(value)
    return [...(isSecretName(withUnderscores(name)) ? [text] : []), ...passwordsIn(text)]
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => secretsUnder(Array.isArray(value) ? name : key, inner))
}

/** `privateKey` → `private_key`. */
const withUnderscores = (name: string): string => name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')

/**
 * The home's API tokens. Reads the file again when it changes, since another process may create or replace the token at
 * any time; a stat takes microseconds. Keeps replaced ones: the running server still uses its own.
 */
export const homeToken = (home: string): (() => readonly string[]) => {
  const file = tokenFile(home)
  let seen = ''
  let known: readonly string[] = []
  return () => {
    const found = statSync(file, { throwIfNoEntry: false })
    const now = found === undefined ? '' : `${found.ino} ${found.mtimeMs} ${found.size}`
    if (now === seen) return known
    seen = now
    try {
      const token = readToken(home)?.token
      if (token !== undefined && !known.includes(token)) known = [token, ...known]
    } catch {
      // Damaged: reported where the token is needed.
    }
    return known
  }
}
