/** Calls back with the data of each event of a stream (server-sent events). Returns when it ends, however it does. */
export const readEventStream = async (response: Response, onData: (data: unknown) => void): Promise<void> => {
  let rest = ''
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      rest += chunk
      const events = rest.split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        if (data !== undefined) onData(JSON.parse(data))
      }
    }
  } catch {
    // What was missed is in the store.
  }
}
