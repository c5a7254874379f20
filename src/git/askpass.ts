import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { readUntrustedTextSync } from '../process/read-untrusted.ts'
import { replaceFileSync } from '../process/replace-file.ts'

/** A secret for one host. It reaches git only through the environment of a network call, never a URL or a command line. */
export type HostToken = { readonly host: string; readonly secret: string }

/**
 * git asks `Username for 'https://github.com': ` and then `Password for 'https://x-access-token@github.com': `.
 * The script answers for exactly one host over https, and passes everything else on to the askpass the user has
 * configured, if any. Plain http gets no token, except on the machine itself.
 */
const script = `#!/bin/sh
rest=\${1#* for \\'}
url=\${rest%%\\'*}
place=\${url##*@}
case $url in
  https://*) place=\${place#https://} ;;
  http://*) place=\${place#http://}
    case $place in localhost|localhost:*|127.0.0.1|127.0.0.1:*) ;; *) place= ;; esac ;;
  *) place= ;;
esac
if [ -n "$COPPICE_ASKPASS_HOST" ] && [ "\${place%%/*}" = "$COPPICE_ASKPASS_HOST" ]; then
  case $1 in
    Username*) echo x-access-token ; exit 0 ;;
    Password*) printf '%s\\n' "$COPPICE_ASKPASS_SECRET" ; exit 0 ;;
  esac
fi
if [ -n "$COPPICE_ASKPASS_NEXT" ]; then
  next=$COPPICE_ASKPASS_NEXT
  unset COPPICE_ASKPASS_HOST COPPICE_ASKPASS_SECRET COPPICE_ASKPASS_NEXT
  exec "$next" "$@"
fi
exit 1
`

/** Written by rename, so that a git that runs it at this moment never sees half of it. */
export const writeAskpass = (directory: string): string => {
  const path = join(directory, 'askpass.sh')
  if (isWritten(path)) return path
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  replaceFileSync(path, script, { mode: 0o700 })
  return path
}

const isWritten = (path: string): boolean => {
  try {
    return readUntrustedTextSync(path) === script
  } catch {
    return false
  }
}

export const askpassEnvironment = (
  path: string,
  token: HostToken,
  next: string | undefined,
): Record<string, string> => ({
  GIT_ASKPASS: path,
  COPPICE_ASKPASS_HOST: token.host,
  COPPICE_ASKPASS_SECRET: token.secret,
  ...(next === undefined || next === '' ? {} : { COPPICE_ASKPASS_NEXT: next }),
})
