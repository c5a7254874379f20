/** Whether a variable or a key of that name holds a secret. Matches too much rather than too little. */
export const isSecretName = (name: string): boolean =>
  /token|secret|passw|passphrase|credential|api_?key|access_?key|private_?key|_key$|_pat$|_auth$/i.test(name)

/** The passwords of a URL, as they are written and as they are meant: of its user, and in its query. */
export const passwordsIn = (url: string): string[] => {
  const parsed = url.includes('://') ? URL.parse(url) : null
  if (parsed === null) return []
  const written = [parsed.password, parsed.searchParams.get('password') ?? '']
  return [...new Set([...written, ...written.map(decoded)])].filter((password) => password !== '')
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
