import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { selfIdentity } from '../process/identity.ts'
import { withPrivateFile } from '../process/files/private-file.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'

/**
 * A secret for one host. It reaches git through a private file that is there for one network call: not through a URL or
 * a command line, and not through the environment either, since git leaves processes behind that keep theirs for hours
 * (an ssh that shares its connection, a credential cache, `git maintenance`).
 */
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
    Password*) secret=$(cat "$COPPICE_ASKPASS_FILE") && printf '%s\\n' "$secret" ; exit ;;
  esac
fi
if [ -n "$COPPICE_ASKPASS_NEXT" ]; then
  next=$COPPICE_ASKPASS_NEXT
  unset COPPICE_ASKPASS_HOST COPPICE_ASKPASS_FILE COPPICE_ASKPASS_NEXT
  exec "$next" "$@"
fi
exit 1
`

/** Written by rename, so that a git that runs it at this moment never sees half of it. */
const writeAskpass = (directory: string): string => {
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

export type Askpass = {
  /** The state directory, in which the script and the file with the secret are written. */
  readonly home: string
  readonly token: HostToken
  /** The askpass that the user has configured. */
  readonly next: string | undefined
}

/** Makes a network call with variables through which git can ask for the secret until the call is over. */
export const withAskpass = <T>(
  { home, token, next }: Askpass,
  call: (variables: Record<string, string>) => Promise<T>,
): Promise<T> => {
  const secret = { directory: join(home, 'askpass'), self: selfIdentity(), name: 'secret', text: token.secret }
  return withPrivateFile(secret, (file) =>
    call({
      GIT_ASKPASS: writeAskpass(home),
      COPPICE_ASKPASS_HOST: token.host,
      COPPICE_ASKPASS_FILE: file,
      ...(next === undefined || next === '' ? {} : { COPPICE_ASKPASS_NEXT: next }),
    }),
  )
}
