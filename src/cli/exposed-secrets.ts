import { statSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../domain/text/shell-word.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { readPlatformSettings, secretsOf } from '../platforms/settings.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { passwordsIn } from '../process/redaction/secret-names.ts'

/** Warns if other users can read a `config.yaml` that holds secrets. */
export const exposedSecrets = ({
  home,
  settings: { databaseUrl = '' },
}: Pick<IsolationContext, 'home' | 'settings'>): { readonly problem: string; readonly remedy: string } | undefined => {
  const file = join(home, 'config.yaml')
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  const text = (mode & 0o077) === 0 ? undefined : readUntrustedTextSync(file, { followLink: true })
  if (text === undefined) return undefined
  const ofPlatforms = secretsOf(readPlatformSettings({ homeText: text, homeFile: file, env: {} }))
  const hasPassword = passwordsIn(databaseUrl).length > 0 && text.includes(databaseUrl)
  if (ofPlatforms.length === 0 && !hasPassword) return undefined
  return { problem: `other users can read the secrets in ${file}`, remedy: `chmod 600 ${shellWord(file)}` }
}
