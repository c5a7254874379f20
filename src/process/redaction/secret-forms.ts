/** A shorter secret ("main", "1234") would hide ordinary text, and thereby reveal itself. */
const MIN_SECRET_LENGTH = 6

/** The shortest line of a multi-line secret (a private key) worth hiding by itself. */
const MIN_LINE_LENGTH = 20

/**
 * The ways programs print a secret by accident: plain, in JSON, a URL, HTML or a shell word, as base64 at any offset
 * (also inside `Basic user:secret`) and as hex. The matcher handles case. Anything more, such as double base64, takes
 * intent, which redaction can't stop.
 */
export const writtenForms = (secret: string): ReadonlySet<string> => {
  const whole = [secret, secret.trim(), secret.replaceAll(String.raw`\n`, '\n').trim()]
  const forms = [...whole, ...linesOf(secret)].flatMap(formsOf)
  return new Set(forms.filter((form) => form.length >= MIN_SECRET_LENGTH))
}

const formsOf = (text: string): readonly string[] => {
  if (text.length < MIN_SECRET_LENGTH) return []
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
  return lines.map((line) => line.trim()).filter((line) => line.length >= MIN_LINE_LENGTH && !line.startsWith('-----'))
}

/** The part of the base64 text that depends only on the secret when `offset` bytes (modulo 3) precede it. */
const base64Core = (secret: string, offset: number): readonly string[] => {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)])
  const start = Math.ceil((offset * 8) / 6)
  const end = Math.floor((bytes.length * 8) / 6)
  return [bytes.toString('base64').slice(start, end), bytes.toString('base64url').slice(start, end)]
}
