import type { Span } from './secret-matcher.ts'
import { type Reading, readingsOf } from './text-readings.ts'

/*
 * What looks like a credential even when nobody told us about it. Every pattern is bounded or anchored on a literal, so
 * that a megabyte of one letter takes no quadratic time.
 */

/** Hides what follows its first group, or all of it without one. */
const SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  // `ssh://git@host` names an account, not a secret; with a colon there is a password
  /(\bssh:\/\/[^\s/?#"'<>:@]*:)[^\s/?#"'<>]*(?=@)/gi,
  /((?<!\bssh)(?<!\+ssh):\/\/)[^\s/?#"'<>]*(?=@)/gi,
  /\b((?:authorization|x-api-key|private-token|set-cookie|cookie)\\?["']?[ \t]*[:=][ \t]*\\?["']?)[^\r\n"'\\]+/gi,
  /\b(bearer[ \t]+)[\w.~+/=-]{8,}/gi,
  // Coppice's own run tokens, GitHub, GitLab, Slack, OpenAI and Anthropic, npm, AWS
  /coppice_run_[0-9a-f]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|\bsk-[\w-]{16,}|npm_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16,}/g,
  // JSON web tokens. The look ahead comes once a word: `-eyJ-eyJ-eyJ…` would begin one at every hyphen.
  /(?<![\w-])(?=[\w-]+\.[\w-]{8,}\.)((?:[\w-]*?-)?)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /(hooks\.slack\.com\/(?:services|actions|commands|workflows|triggers)\/)[\w/]+/g,
  // What a service hands out for a connection or an answer: Slack's ticket for Socket Mode, Discord's interaction tokens
  /([?&](?:ticket|access_token)=)[\w%.~+/=-]{8,}/g,
  /aW50ZXJhY3Rpb246[\w-]{16,}/g,
  // The cookie of the page
  /(?<![0-9a-f])[0-9a-f]{32}\.[0-9a-f]{64}(?![0-9a-f])/g,
  // Telegram bots `123456789:AA…`, also in a URL as `/bot123456789:AA…/`; Discord bots three dotted parts
  /(?<!\d)\d{6,12}:[\w-]{30,}/g,
  /\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,}/g,
]

/** What the tokens begin with: such a word counts even where an escape sequence touches it. */
const STARTS = /coppice_run_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|sk-|npm_|AKIA|eyJ/g

/** `start` is where the words begin by which it was recognised: without them, nobody would know what follows. */
export type CredentialSpan = Span & { readonly start: number }

/** Whatever escape sequences and invisible characters split it. */
export const credentialSpans = (text: string): CredentialSpan[] =>
  readingsOf(text, STARTS).flatMap((reading) =>
    SHAPES.flatMap((shape) => [...reading.text.matchAll(shape)].map((match) => spanOf(reading, match))),
  )

const spanOf = ({ placeOf }: Reading, { index, 0: all, 1: before = '' }: RegExpExecArray): CredentialSpan => ({
  start: placeOf(index),
  from: placeOf(index + before.length),
  to: placeOf(index + all.length - 1) + 1,
})

/**
 * Where a credential of several words may have begun whose end is not there yet; the length of the text when none has.
 * Those without a space in them are one word, which the caller waits for anyway.
 */
export const unfinishedCredential = (text: string): number =>
  Math.min(text.length, ...readingsOf(text, STARTS).map(({ text: read, placeOf }) => placeOf(unfinishedIn(read))))

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

/** A word that ends like this is a token of which the rest is still to come, not a word of prose. */
export const beginsToken = (word: string): boolean =>
  readingsOf(word, STARTS).some(({ text }) => UNFINISHED_TOKEN.test(text))

const UNFINISHED_TOKEN =
  /(?:(?:coppice_run_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|\bsk-|npm_|AKIA|\beyJ|aW50ZXJhY3Rpb246)[\w.-]*|:\/\/[^\s/?#"'<>]*|hooks\.slack\.com\/\w+\/[\w/]*|[?&](?:ticket|access_token)=[\w%.~+/=-]*|(?<![0-9a-f])[0-9a-f]{32}\.[0-9a-f]*|(?<!\d)\d{6,12}:[\w-]*|\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]*)$/
