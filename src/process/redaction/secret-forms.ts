/** A shorter secret ("main", "1234") would black out ordinary text and reveal what it is by doing so. */
export const SHORTEST_SECRET = 6

/** A line of a longer secret, such as a private key, that says something by itself. */
const SHORTEST_LINE = 20

/**
 * The ways in which programs write a secret by accident: plain, in JSON, a URL, HTML or a shell word, as base64 at any
 * offset (so also inside `Basic user:secret`) and as hex. Upper and lower case are the matcher's business. Anything
 * further, such as base64 twice over, takes intent, and redaction is no wall against intent.
 */
export const writtenForms = (secret: string): ReadonlySet<string> => {
  const whole = [secret, secret.trim(), secret.replaceAll(String.raw`\n`, '\n').trim()]
  const forms = [...whole, ...linesOf(secret)].flatMap(formsOf)
  return new Set(forms.filter((form) => form.length >= SHORTEST_SECRET))
}

const formsOf = (text: string): readonly string[] => {
  if (text.length < SHORTEST_SECRET) return []
  const json = JSON.stringify(text).slice(1, -1)
  const encoded = encodeURIComponent(text.toWellFormed())
  const hex = Buffer.from(text).toString('hex')
  return [
    text,
    json,
    JSON.stringify(json).slice(1, -1),
    json.replaceAll(/[&<>]/g, (sign) => String.raw`\u00${sign.charCodeAt(0).toString(16)}`),
    text.replaceAll(/[&<>"']/g, (sign) => HTML[sign] ?? sign),
    text.replaceAll("'", String.raw`'\''`),
    encoded,
    encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    encoded.replaceAll('%20', '+'),
    hex,
    hex.toUpperCase(),
    ...[0, 1, 2].flatMap((offset) => base64Core(text, offset)),
  ]
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const linesOf = (secret: string): readonly string[] => {
  const lines = secret.replaceAll(String.raw`\n`, '\n').split('\n')
  if (lines.length === 1) return []
  return lines.map((line) => line.trim()).filter((line) => line.length >= SHORTEST_LINE && !line.startsWith('-----'))
}

/** The part of the base64 text that depends on the secret alone when `offset` bytes (modulo 3) stand before it. */
const base64Core = (secret: string, offset: number): readonly string[] => {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)])
  const start = Math.ceil((offset * 8) / 6)
  const end = Math.floor((bytes.length * 8) / 6)
  return [bytes.toString('base64').slice(start, end), bytes.toString('base64url').slice(start, end)]
}
