import { trimEndOf } from '../domain/text/trim-end.ts'
import * as rule from '../domain/config/rules.ts'
import type { Rule } from '../domain/config/rules.ts'

export const secret: Rule<string> = { ...rule.text, secret: true }

export const url: Rule<string> = {
  expected: 'an https:// or http:// URL',
  read: (value) => {
    const parsed = typeof value === 'string' ? URL.parse(value) : null
    return parsed?.protocol === 'https:' || parsed?.protocol === 'http:' ? trimEndOf(String(value), '/') : undefined
  },
}

/** YAML reads some services' IDs as numbers. */
const userId: Rule<string> = {
  expected: 'a user ID',
  read: (value) => rule.text.read(typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value),
}

export const userIds: Rule<readonly string[]> = {
  ...rule.list(userId, 1_000),
  expected: 'a list of user IDs (not names, which can change hands)',
  fromText: (text) =>
    text
      .split(/[\s,]+/)
      .map((one) => one.trim())
      .filter((one) => one !== ''),
}

/** A private key has many lines; variables often write its line breaks as \n. */
export const privateKey: Rule<string> = {
  expected: 'a private key in PEM format, starting with -----BEGIN',
  secret: true,
  read: (value) =>
    typeof value === 'string' && value.trim().startsWith('-----BEGIN')
      ? value.replaceAll(String.raw`\n`, '\n')
      : undefined,
}

export const flag: Rule<boolean> = {
  ...rule.flag,
  fromText: (text) => (text === 'true' ? true : text === 'false' ? false : text),
}
