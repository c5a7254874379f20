/** Whether a variable or key with this name holds a secret. Prefers false positives. */
export const isSecretName = (name: string): boolean =>
  /token|secret|passw|passphrase|credential|api_?key|access_?key|private_?key|_key$|_pat$|_auth$/i.test(name)

/** Passwords in a URL's user info and query, both encoded and decoded. */
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
