import { AppError } from '../../domain/errors.ts'
import { isRefusal, refusalOf, type SlackClient, toDeliveryError } from './client.ts'
import type { SlackSelf } from './message/parse.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

/** Gets our own identity. A rejected token is a configuration error; anything else may be temporary. */
export const identify = async (client: SlackClient): Promise<SlackSelf> => {
  const answer = await client.auth.test().catch((error: unknown) => {
    throw isRefusal(error) ? refused('bot token', error) : toDeliveryError(error)
  })
  const { user_id: userId, team_id: teamId, bot_id: botId, enterprise_id: enterpriseId, user: name, url } = answer
  if (userId === undefined || teamId === undefined) throw refused('bot token', new Error('it has no user'))
  return { userId, teamId, botId, enterpriseId, name: name ?? userId, url }
}

/** Slack rejected a token. */
export const refused = (what: string, cause: unknown): AppError =>
  new AppError('config-invalid', `Slack rejected the ${what}: ${refusalOf(cause) ?? String(cause)}`, {
    cause,
    remedy: remedy`see the setup steps: ${coppice('platforms setup slack')}`,
  })
