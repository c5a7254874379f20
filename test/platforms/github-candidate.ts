import type { Platform } from '../../src/platforms/platform.ts'
import { commented, makeGithub, post, startDouble } from './github-double.ts'

const thread = 'acme/app#42'

/** For the suite over all platforms, whose one conversation is an issue here. */
export const githubCandidate = async () => {
  const double = await startDouble()
  double.permissions.set('alice', { id: 5, permission: 'write' })
  const { platform: real } = await makeGithub({ token: 'ghp_test', bot: 'coppice', apiUrl: double.url })
  let delivered = ''
  const platform: Platform = {
    ...real,
    start: (inbox) =>
      real.start({
        ...inbox,
        // A comment is known by its own id; the suite knows it by the delivery's.
        accept: (order, by) => inbox.accept({ ...order, conversationId: 'conversation-1', deliveryId: delivered }, by),
      }),
    send: (message) => real.send({ ...message, conversationId: thread }),
  }
  return {
    platform,
    deliver: async ({ deliveryId, text }: { readonly deliveryId: string; readonly text: string }) => {
      delivered = deliveryId
      const { status, body } = await post(platform, { ...commented(`@coppice ${text}`), id: deliveryId })
      if (status !== 200) throw new Error(`${status}: ${body ?? ''}`)
    },
    deliverFromStranger: async (text: string) => {
      double.permissions.set('mallory', { id: 66, permission: 'read' })
      const user = { id: 66, login: 'mallory', type: 'User' }
      await post(platform, commented(`@coppice ${text}`, { user, id: 999 }))
    },
    arrived: () =>
      double.bodies(thread).map((body) => ({
        conversationId: 'conversation-1',
        text: body.replace(/\n\n<!-- coppice:.*-->$/, ''),
      })),
    sendsOnce: true,
    breakService: (how: 'refused' | 'unreachable') => {
      double.trouble = () => ({ status: how === 'refused' ? 403 : 503 })
    },
    close: () => double.close(),
  }
}
