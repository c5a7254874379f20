/**
 * Removes these characters from the end. Not `/[…]+$/`, which tries every run of them in the text: with 100,000 spaces
 * in the middle, that takes half a minute.
 */
export const trimEndOf = (text: string, characters: string): string => {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1
  return text.slice(0, end)
}
