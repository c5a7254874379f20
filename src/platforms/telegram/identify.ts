import { refusalOf, signalFor, type TelegramApi } from './client.ts'
import type { TelegramSelf } from './parse.ts'
import { invalid } from './settings.ts'

/** Gets our own identity. Telegram returns 401 for a revoked token and 404 for an unknown one; the rest may pass. */
export const identify = async (
  api: TelegramApi,
  signal: AbortSignal,
): Promise<Pick<TelegramSelf, 'id' | 'username'>> => {
  const { id, username } = await api.getMe(signalFor(signal)).catch((error: unknown) => {
    const refusal = refusalOf(error)
    if (refusal?.code !== 401 && refusal?.code !== 404) throw error
    throw invalid(`Telegram rejected the bot token: ${refusal.description}`, 'write /token to @BotFather', error)
  })
  return { id, username }
}
