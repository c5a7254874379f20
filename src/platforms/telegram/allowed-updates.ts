/** Messages and pressed buttons. Other updates, such as edits, aren't even sent to us. */
export const allowedUpdates = ['message', 'callback_query'] as const
