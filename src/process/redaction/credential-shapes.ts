import type { Span } from './secret-matcher.ts'
import { type Reading, readingsOf } from './text-readings.ts'

/*
 * Detects credentials that nobody registered. Every pattern is bounded or anchored on a literal, so a megabyte of one
 * letter doesn't take quadratic time.
 */

/** Hides what follows the first group, or the whole match. */
const SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  // `ssh://git@host` names an account, not a secret; a colon introduces a password
  /(\bssh:\/\/[^\s/?#"'<>:@]*:)[^\s/?#"'<>]*(?=@)/gi,
  /((?<!\bssh)(?<!\+ssh):\/\/)[^\s/?#"'<>]*(?=@)/gi,
  /\b((?:authorization|x-api-key|private-token|set-cookie|cookie)\\?["']?[ \t]*[:=][ \t]*\\?["']?)[^\r\n"'\\]+/gi,
  /\b(bearer[ \t]+)[\w.~+/=-]{8,}/gi,
  // Coppice's own run tokens, GitHub, GitLab, Slack, OpenAI and Anthropic, npm, AWS
  /coppice_run_[0-9a-f]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|\bsk-[\w-]{16,}|npm_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16,}/g,
  // JSON web tokens. The lookahead runs once per word: `-eyJ-eyJ-eyJ…` would match at every hyphen.
  /(?<![\w-])(?=[\w-]+\.[\w-]{8,}\.)((?:[\w-]*?-)?)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /(hooks\.slack\.com\/(?:services|actions|commands|workflows|triggers)\/)[\w/]+/g,
  // Short-lived tokens: Slack's Socket Mode ticket, Discord's interaction tokens
  /([?&](?:ticket|access_token)=)[\w%.~+/=-]{8,}/g,
  /aW50ZXJhY3Rpb246[\w-]{16,}/g,
  // The page's cookie
  /(?<![0-9a-f])[0-9a-f]{32}\.[0-9a-f]{64}(?![0-9a-f])/g,
  // Telegram bots `123456789:AA…`, in URLs `/bot123456789:AA…/`; Discord bots have three dotted parts
  /(?<!\d)\d{6,12}:[\w-]{30,}/g,
  /\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,}/g,
]

/** Token prefixes, which count even next to an escape sequence. */
const STARTS = /coppice_run_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|sk-|npm_|AKIA|eyJ/g

/** `start` includes the prefix that identifies the credential. */
export type CredentialSpan = Span & { readonly start: number }

/** Even if escape sequences or invisible characters split it. */
export const credentialSpans = (text: string): CredentialSpan[] =>
  readingsOf(text, STARTS).flatMap((reading) =>
    // Most texts have none, and `matchAll` copies the expression before it looks.
    SHAPES.filter((shape) => reading.text.search(shape) !== -1).flatMap((shape) =>
      [...reading.text.matchAll(shape)].map((match) => spanOf(reading, match)),
    ),
  )

const spanOf = ({ positionOf }: Reading, { index, 0: all, 1: before = '' }: RegExpExecArray): CredentialSpan => ({
  start: positionOf(index),
  from: positionOf(index + before.length),
  to: positionOf(index + all.length - 1) + 1,
})

/**
 * Where an incomplete credential of several words may start; the text's length if there is none. Single words are held
 * back by the caller anyway.
 */
export const unfinishedCredential = (text: string): number =>
  Math.min(text.length, ...readingsOf(text, STARTS).map(({ text: read, positionOf }) => positionOf(unfinishedIn(read))))

const unfinishedIn = (text: string): number => {
  const key = text.lastIndexOf('-----BEGIN ')
  if (key !== -1 && UNFINISHED_KEY.test(text.slice(key))) return key
  const line = text.lastIndexOf('\n') + 1
  const header = UNFINISHED_HEADER.exec(text.slice(line))
  return header === null ? text.length : line + header.index
}

const UNFINISHED_KEY =
  /^-----BEGIN (?:[A-Z ]{0,54}-{0,5}$|[A-Z ]{0,40}PRIVATE KEY-----(?![\s\S]*-----END [A-Z ]{0,40}-----))/

const UNFINISHED_HEADER =
  /\b(?:authorization|x-api-key|private-token|set-cookie|cookie)\\?["']?[ \t]*(?:$|[:=])|\bbearer[ \t]*(?:$|[ \t][\w.~+/=-]*$)/i

/** Whether the word ends in an incomplete token rather than prose. */
export const beginsToken = (word: string): boolean =>
  readingsOf(word, STARTS).some(({ text }) => UNFINISHED_TOKEN.test(text))

const UNFINISHED_TOKEN =
  /(?:(?:coppice_run_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|\bsk-|npm_|AKIA|\beyJ|aW50ZXJhY3Rpb246)[\w.-]*|:\/\/[^\s/?#"'<>]*|hooks\.slack\.com\/\w+\/[\w/]*|[?&](?:ticket|access_token)=[\w%.~+/=-]*|(?<![0-9a-f])[0-9a-f]{32}\.[0-9a-f]*|(?<!\d)\d{6,12}:[\w-]*|\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]*)$/
