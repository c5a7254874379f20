/*
 * What the bot needs on GitHub: the setup guide names it, and the check compares it with what was granted.
 */

/** By the names in the API's answers. An app asks for these; a fine-grained token is given them. */
const neededPermissions: Readonly<Record<string, 'read' | 'write'>> = {
  metadata: 'read',
  contents: 'write',
  issues: 'write',
  pull_requests: 'write',
}

const neededEvents = [
  'issues',
  'issue_comment',
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
] as const

/** `contents: write`, as GitHub's pages name them. */
export const missingPermissions = (granted: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(neededPermissions)
    .filter(([name, level]) => !covers(granted[name], level))
    .map(([name, level]) => `${name}: ${level}`)

const covers = (granted: unknown, level: 'read' | 'write'): boolean =>
  granted === 'admin' || granted === 'write' || (level === 'read' && granted === 'read')

export const missingEvents = (subscribed: unknown): string[] =>
  neededEvents.filter((event) => !Array.isArray(subscribed) || !subscribed.includes(event))
