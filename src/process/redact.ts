export type Redact = (text: string) => string

/**
 * The one redaction function. Hides the given secrets, however they are written (plain, JSON, URL, base64 at any
 * offset, so also inside `Basic user:secret`), and what looks like a credential even when nobody told us of it.
 */
export const createRedactor = (secrets: readonly string[]): Redact => {
  const known = knownSecrets(secrets)
  return (text) => {
    const withoutKnown = known === undefined ? text : text.replaceAll(known, HIDDEN)
    return SHAPES.reduce((rest, shape) => rest.replaceAll(shape.pattern, shape.replacement), withoutKnown)
  }
}

export const HIDDEN = '[hidden]'

/** A shorter secret ("main", "1234") would blacken ordinary text and thereby tell what it is. */
const SHORTEST_SECRET = 6

const knownSecrets = (secrets: readonly string[]): RegExp | undefined => {
  const forms = new Set(secrets.filter((secret) => secret.length >= SHORTEST_SECRET).flatMap(writtenForms))
  if (forms.size === 0) return undefined
  // longest first: a secret that contains another must not leave its rest behind
  const longestFirst = [...forms].sort((a, b) => b.length - a.length)
  return new RegExp(longestFirst.map(literally).join('|'), 'g')
}

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)

const writtenForms = (secret: string): readonly string[] => {
  const encoded = encodeURIComponent(secret.toWellFormed())
  return [
    secret,
    secret.trim(),
    JSON.stringify(secret).slice(1, -1),
    encoded,
    encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    encoded.replaceAll('%20', '+'),
    ...[0, 1, 2].flatMap((offset) => base64Core(secret, offset)),
  ].filter((form) => form.length >= SHORTEST_SECRET)
}

/** The part of the base64 text that depends on the secret alone when `offset` bytes (modulo 3) stand before it. */
const base64Core = (secret: string, offset: number): readonly string[] => {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)])
  const start = Math.ceil((offset * 8) / 6)
  const end = Math.floor((bytes.length * 8) / 6)
  return [bytes.toString('base64').slice(start, end), bytes.toString('base64url').slice(start, end)]
}

/** Every pattern is bounded or anchored on a literal, so that a megabyte of one letter takes no quadratic time. */
const SHAPES: readonly { readonly pattern: RegExp; readonly replacement: string }[] = [
  {
    pattern: /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
    replacement: HIDDEN,
  },
  // `ssh://git@host` names an account, not a secret; with a colon there is a password
  { pattern: /(\bssh:\/\/[^\s/?#"'<>:@]*:)[^\s/?#"'<>]*@/gi, replacement: `$1${HIDDEN}@` },
  { pattern: /((?<!\bssh)(?<!\+ssh):\/\/)[^\s/?#"'<>]*@/gi, replacement: `$1${HIDDEN}@` },
  {
    pattern:
      /\b((?:authorization|x-api-key|private-token|set-cookie|cookie)\\?["']?[ \t]*[:=][ \t]*\\?["']?)[^\r\n"'\\]+/gi,
    replacement: `$1${HIDDEN}`,
  },
  { pattern: /\b(bearer[ \t]+)[\w.~+/=-]{8,}/gi, replacement: `$1${HIDDEN}` },
  {
    // GitHub, GitLab, Slack, OpenAI and Anthropic, npm, AWS, JSON web tokens
    pattern:
      /gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|\bsk-[\w-]{16,}|npm_[A-Za-z0-9]{30,}|\bAKIA[A-Z0-9]{16}\b|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
    replacement: HIDDEN,
  },
  { pattern: /(hooks\.slack\.com\/services\/)[\w/]+/g, replacement: `$1${HIDDEN}` },
  // Telegram bots `123456789:AA…`, also in a URL as `/bot123456789:AA…/`; Discord bots three dotted parts
  { pattern: /(?<!\d)\d{6,12}:[\w-]{30,}/g, replacement: HIDDEN },
  { pattern: /\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,}/g, replacement: HIDDEN },
]
