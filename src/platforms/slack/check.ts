import {
  type Response,
  createRequester,
  type Check,
  type CheckParts,
  checkAllowedUsers,
  missing,
  fail,
  passed,
  type Request,
  textOf,
  type Verdict,
  pass,
} from '../checks.ts'
import type { SlackSettings } from './settings.ts'
import { slackEvents, slackScopes, useOf } from './setup.ts'

/** Checks that Slack accepts the tokens, that the scopes are granted, and that users are allowed. */
export const checkSlack = async (given: SlackSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = createRequester(parts)
  const { botToken, appToken, signingSecret, allowedUsers = [], apiUrl = 'https://slack.com/api' } = given
  const post = (method: string, token: string): Request => ({
    url: `${apiUrl}/${method}`,
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  return [
    botToken === undefined
      ? missing('bot token', 'SLACK_BOT_TOKEN')
      : await ask('bot token', post('auth.test', botToken), slackBot),
    ...(appToken === undefined
      ? []
      : [await ask('app-level token', post('apps.connections.open', appToken), slackApp)]),
    ...(signingSecret === undefined ? [] : [passed('signing secret', 'set; the first event will verify it')]),
    ...(appToken === undefined && signingSecret === undefined
      ? [missing('connection', 'SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP)')]
      : []),
    // Reading the app's configuration needs a token of its own kind, which expires after 12 hours.
    ...(botToken === undefined
      ? []
      : [
          passed(
            'events, buttons and /coppice',
            `not checkable with these tokens; compare the app with the manifest (events: ${slackEvents.join(', ')})`,
          ),
        ]),
    checkAllowedUsers(allowedUsers, 'SLACK_ALLOWED_USERS', /^(?:[TE][A-Z0-9]+\/)?[UW][A-Z0-9]+$/, 'U0123ABCD'),
  ]
}

const slackBot = ({ headers, body }: Response): Verdict => {
  if (body['ok'] !== true) return fail(textOf(body['error']), 'copy the Bot User OAuth Token (xoxb-…) again')
  const scopes = headers
    .get('x-oauth-scopes')
    ?.split(',')
    .map((scope) => scope.trim())
  const lacking = scopes === undefined ? [] : slackScopes.filter((scope) => !scopes.includes(scope))
  return lacking.length === 0
    ? pass(`${textOf(body['user'])} in ${textOf(body['team'])}`)
    : fail(
        `missing scopes: ${lacking.map((scope) => `${scope} (${useOf(scope)})`).join(', ')}`,
        'add the scopes under OAuth & Permissions and install the app again',
      )
}

const slackApp = ({ body }: Response): Verdict =>
  body['ok'] === true
    ? pass('Socket Mode works')
    : fail(textOf(body['error']), 'create an App-Level Token (xapp-…) with connections:write, and turn on Socket Mode')
