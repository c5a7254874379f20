/** The placeholders of a pool's `prompt`. */
export const promptPlaceholders = [
  'item.id',
  'item.title',
  'item.body',
  'agent',
  'branch',
  'codebase',
  'directory',
  'finish',
] as const
export type PromptPlaceholder = (typeof promptPlaceholders)[number]

const PLACEHOLDER = /\{\{\s*([a-z.]+)\s*\}\}/gi

const isKnown = (name: string): name is PromptPlaceholder => promptPlaceholders.some((known) => known === name)

export const unknownPlaceholders = (template: string): readonly string[] =>
  [...template.matchAll(PLACEHOLDER)].flatMap(([, name = '']) => (isKnown(name) ? [] : [name]))

/** In one pass, so that placeholders in an item's text aren't expanded. */
export const fillPrompt = (template: string, values: Readonly<Record<PromptPlaceholder, string>>): string =>
  template.replaceAll(PLACEHOLDER, (whole, name: string) => (isKnown(name) ? values[name] : whole))
