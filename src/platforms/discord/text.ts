/** Whether the text addresses us: not in code, and not in a quoted line. */
export const mentions = (text: string, userId: string): boolean =>
  text
    .replaceAll(/```[\s\S]*?(?:```|$)/g, '')
    .replaceAll(/`[^`\n]*`/g, '')
    // `>>> ` quotes everything that follows.
    .replace(/^>>> [\s\S]*/m, '')
    .split('\n')
    .some((line) => !/^\s*> /.test(line) && mentionOf(userId).test(line))

/** Removes the mention that only addresses us: `@coppice /status` becomes `/status`. */
export const withoutLeadingMention = (text: string, userId: string): string =>
  text.replace(new RegExp(String.raw`^(?:\s*<@!?${userId}>[,:]?)+`), '').trim()

/** Replaces mentions by names: `<@80351110224678912>` means nothing to an agent. */
export const withNames = (text: string, names: ReadonlyMap<string, string>): string =>
  text.replaceAll(/<@!?(\d+)>/g, (whole, id: string) => {
    const name = names.get(id)
    return name === undefined ? whole : `@${name}`
  })

const mentionOf = (userId: string): RegExp => new RegExp(String.raw`<@!?${userId}>`)
