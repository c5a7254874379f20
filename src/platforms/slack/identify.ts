import { AppError } from '../../domain/errors.ts'
import { refusalOf, type SlackClient, toDeliveryError } from './client.ts'
import type { SlackSelf } from './parse.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

/** Who we are. A token that Slack does not take is a fault of the configuration; anything else may pass. */
export const identify = async (client: SlackClient): Promise<SlackSelf> => {
  const answer = await client.auth.test().catch((error: unknown) => {
    const failure = toDeliveryError(error)
    throw failure.kind === 'refused' && refusalOf(error) !== undefined ? refused('bot token', error) : failure
  })
  const { user_id: userId, team_id: teamId, bot_id: botId, enterprise_id: enterpriseId, user: name } = answer
  if (userId === undefined || teamId === undefined) throw refused('bot token', new Error('it names nobody'))
  return { userId, teamId, botId, enterpriseId, name: name ?? userId }
}

/** A token that Slack does not take. */
export const refused = (what: string, cause: unknown): AppError =>
  new AppError('config-invalid', `Slack rejected the ${what}: ${refusalOf(cause) ?? String(cause)}`, {
    cause,
    remedy: remedy`see what is missing: ${coppice('platforms setup slack')}`,
  })
