import type { Key } from './keys.ts'
import { oneLine } from './line.ts'

/** A line that is being typed. `at`: the number of characters before the cursor. */
export type InputLine = { readonly characters: readonly string[]; readonly at: number }

export const emptyInput: InputLine = { characters: [], at: 0 }

export const inputText = ({ characters }: InputLine): string => characters.join('')

/** Longer messages belong in a file, or in `coppice nudge`. */
const MOST_CHARACTERS = 10_000

/** The line after a key; unchanged if the key means nothing to it. */
export const edited = (line: InputLine, key: Key): InputLine => {
  const { characters, at } = line
  const without = (from: number, to: number): InputLine => ({
    characters: [...characters.slice(0, from), ...characters.slice(to)],
    at: from,
  })
  if ('text' in key) {
    const added = charactersOf(oneLine(key.text)).slice(0, MOST_CHARACTERS - characters.length)
    return { characters: [...characters.slice(0, at), ...added, ...characters.slice(at)], at: at + added.length }
  }
  switch (key.name) {
    case 'left':
      return { characters, at: Math.max(0, at - 1) }
    case 'right':
      return { characters, at: Math.min(characters.length, at + 1) }
    case 'home':
      return { characters, at: 0 }
    case 'end':
      return { characters, at: characters.length }
    case 'backspace':
      return at === 0 ? line : without(at - 1, at)
    case 'delete':
      return at === characters.length ? line : without(at, at + 1)
    case 'delete-word':
      return without(beforeWord(characters, at), at)
    case 'delete-line':
      return without(0, at)
    default:
      return line
  }
}

/** As people count them: an emoji with a skin tone is one. */
const charactersOf = (text: string): string[] =>
  Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment)

const beforeWord = (characters: readonly string[], at: number): number => {
  let from = at
  while (from > 0 && characters[from - 1] === ' ') from -= 1
  while (from > 0 && characters[from - 1] !== ' ') from -= 1
  return from
}
