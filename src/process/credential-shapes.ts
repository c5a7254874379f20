import type { Span } from './secret-matcher.ts'

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
  // Coppice's own run tokens, GitHub, GitLab, Slack, OpenAI and Anthropic, npm, AWS, JSON web tokens
  /coppice_run_[0-9a-f]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|\bsk-[\w-]{16,}|npm_[A-Za-z0-9]{30,}|\bAKIA[A-Z0-9]{16}\b|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /(hooks\.slack\.com\/services\/)[\w/]+/g,
  // Telegram bots `123456789:AA…`, also in a URL as `/bot123456789:AA…/`; Discord bots three dotted parts
  /(?<!\d)\d{6,12}:[\w-]{30,}/g,
  /\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,}/g,
]

/** `start` is where the words begin by which it was recognised: without them, nobody would know what follows. */
export type CredentialSpan = Span & { readonly start: number }

export const credentialSpans = (text: string): CredentialSpan[] =>
  SHAPES.flatMap((shape) =>
    [...text.matchAll(shape)].map((match) => ({
      start: match.index,
      from: match.index + (match[1]?.length ?? 0),
      to: match.index + match[0].length,
    })),
  )

/**
 * Where a credential of several words may have begun whose end is not there yet; the length of the text when none has.
 * Those without a space in them are one word, which whoever asks waits for anyway.
 */
export const unfinishedCredential = (text: string): number => {
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
  /(?:coppice_run_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|\bsk-|npm_|\beyJ|:\/\/[^/]*:)[\w.-]*$/.test(word)
