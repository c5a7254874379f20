import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { HostToken } from '../domain/forge/login.ts'
import { selfIdentity } from '../process/identity.ts'
import { withPrivateFile } from '../process/files/private-file.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'

/**
 * Git asks `Username for 'https://github.com': ` and then `Password for 'https://x-access-token@github.com': `, with a
 * path behind the host if `credential.useHttpPath` is set. Older gits (before 2.48) write user name and path as they
 * are: a user name `github.com'` or `github.com/`, or a path that ends in `@github.com`, would look like the host. So
 * the script answers only a question that can be read in one way: no second quote, and an `@` only before the host.
 * Everything else, another host above all, is passed on to the user's own askpass, if any. Plain http gets no token,
 * except on localhost.
 */
const script = `#!/bin/sh
place=
case $1 in
  "Username for '"*"': " | "Password for '"*"': ") url=\${1#* for \\'} url=\${url%\\': } ;;
  *) url= ;;
esac
case $url in
  *\\'*) ;;
  https://*) place=\${url#https://} ;;
  http://*) place=\${url#http://}
    host=\${place##*@}
    case \${host%%/*} in localhost|localhost:*|127.0.0.1|127.0.0.1:*) ;; *) place= ;; esac ;;
esac
case $place in
  */*@* | *@*@*) place= ;;
  *@*) place=\${place#*@} ;;
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

/** Written by rename, so git never runs a half-written script. */
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
  /** The state directory, where the script and the secret's file are written. */
  readonly home: string
  readonly token: HostToken
  /** The user's own askpass. */
  readonly next: string | undefined
}

/** Runs a network call with variables that let git ask for the secret until the call ends. */
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
