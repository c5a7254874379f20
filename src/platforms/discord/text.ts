/** Whether somebody really addresses us: not in code, and not in a line that quotes somebody else. */
export const mentions = (text: string, userId: string): boolean =>
  text
    .replaceAll(/```[\s\S]*?(?:```|$)/g, '')
    .replaceAll(/`[^`\n]*`/g, '')
    // `>>> ` quotes everything that follows.
    .replace(/^>>> [\s\S]*/m, '')
    .split('\n')
    .some((line) => !/^\s*> /.test(line) && callOf(userId).test(line))

/** The mention that only calls us is no part of what is asked: `@coppice /status` is `/status`. */
export const withoutCall = (text: string, userId: string): string =>
  text.replace(new RegExp(String.raw`^(?:\s*<@!?${userId}>[,:]?)+`), '').trim()

/** Others are called by their names, as one reads them: `<@80351110224678912>` says nothing to an agent. */
export const withNames = (text: string, names: ReadonlyMap<string, string>): string =>
  text.replaceAll(/<@!?(\d+)>/g, (whole, id: string) => {
    const name = names.get(id)
    return name === undefined ? whole : `@${name}`
  })

const callOf = (userId: string): RegExp => new RegExp(String.raw`<@!?${userId}>`)
