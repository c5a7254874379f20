import type { Block } from './document.ts'

export type Layout = {
  readonly print: (block: Block) => string
  /** Prefix of each quoted line; empty for dialects that wrap a quote in tags instead. */
  readonly quote?: string
  readonly item?: (item: NonNullable<Block['item']>) => string
}

/** Prints blocks on their original lines: items indented, quotes prefixed, blank lines kept. */
export const layOut = (blocks: readonly Block[], { print, quote = '> ', item = bullet }: Layout): string => {
  const lines: string[] = []
  let before: readonly number[] = []
  for (const block of blocks) {
    const shared = block.quotes.filter((id, depth) => id === before[depth]).length
    for (let gap = 0; gap < block.gap; gap++) lines.push(quote.repeat(shared).trimEnd())
    const mark = block.item === undefined ? '' : `${item(block.item)} `
    const own = '  '.repeat(Math.max(0, block.depth - 1))
    // Code isn't indented: some dialects don't recognise an indented fence.
    const following = block.kind === 'code' || block.kind === 'table' ? '' : '  '.repeat(block.depth)
    for (const [nth, line] of print(block).split('\n').entries()) {
      const margin = nth === 0 && block.item !== undefined ? own + mark : following
      lines.push(`${quote.repeat(block.quotes.length)}${margin}${line}`)
    }
    before = block.quotes
  }
  return lines.join('\n')
}

/** The number in a numbered list, otherwise `•`. */
export const bullet = ({ mark, ticked }: NonNullable<Block['item']>): string =>
  ticked !== undefined ? (ticked ? '☑' : '☐') : /^\d/.test(mark) ? mark : '•'
