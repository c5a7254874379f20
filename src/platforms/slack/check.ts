import {
  type Answer,
  asker,
  type Check,
  type CheckParts,
  listed,
  missing,
  no,
  passed,
  type Request,
  said,
  type Verdict,
  yes,
} from '../checks.ts'
import type { SlackSettings } from './settings.ts'
import { slackScopes } from './setup.ts'

/** Are the tokens accepted, are the scopes there, and who may give orders? */
export const checkSlack = async (given: SlackSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = asker(parts)
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
    listed(allowedUsers, 'SLACK_ALLOWED_USERS', /^(?:[TE][A-Z0-9]+\/)?[UW][A-Z0-9]+$/, 'U0123ABCD'),
  ]
}

const slackBot = ({ headers, body }: Answer): Verdict => {
  if (body['ok'] !== true) return no(said(body['error']), 'copy the Bot User OAuth Token (xoxb-…) again')
  const scopes = headers
    .get('x-oauth-scopes')
    ?.split(',')
    .map((scope) => scope.trim())
  const lacking = scopes === undefined ? [] : slackScopes.filter((scope) => !scopes.includes(scope))
  return lacking.length === 0
    ? yes(`${said(body['user'])} in ${said(body['team'])}`)
    : no(`missing scopes: ${lacking.join(', ')}`, 'add the scopes under OAuth & Permissions and install the app again')
}

const slackApp = ({ body }: Answer): Verdict =>
  body['ok'] === true
    ? yes('Socket Mode works')
    : no(said(body['error']), 'create an App-Level Token (xapp-…) with connections:write, and turn on Socket Mode')
