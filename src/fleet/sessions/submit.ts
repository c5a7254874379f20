import { setTimeout as delay } from 'node:timers/promises'
import type { Tmux, TmuxPane } from '../../process/tmux.ts'

/** A program that shows nothing of what it is given gets Enter after this long. */
const SHOWN_MS = 1_500

/** From being shown to being ready for Enter. */
const SETTLED_MS = 100

/**
 * Gives a program in a terminal a text, and Enter. Programs with an input box of their own take an Enter that comes
 * right behind the text for a part of it: Claude Code after 1 of 25 pastes, Codex after most texts that are typed
 * instead of pasted. So Enter waits until the text is on the screen.
 */
export const submit = async (
  tmux: Pick<Tmux, 'screen' | 'paste' | 'enter'>,
  pane: TmuxPane,
  text: string,
): Promise<void> => {
  const before = await tmux.screen(pane)
  await tmux.paste(pane, text)
  const deadline = performance.now() + SHOWN_MS
  do await delay(20)
  while (!isShown(text, before, await tmux.screen(pane)) && performance.now() < deadline)
  await delay(SETTLED_MS)
  await tmux.enter(pane)
}

/** Its end has appeared, or what stands for a long paste: `[Pasted text #1 +3 lines]`, `[Pasted Content 1024 chars]`. */
export const isShown = (text: string, before: string, now: string): boolean => {
  const end = withoutSpace(text).slice(-END_CHARACTERS)
  return [end, '[Pasted'].some((part) => countOf(part, withoutSpace(now)) > countOf(part, withoutSpace(before)))
}

/** Short enough to be on one line of a box with borders most of the time. */
const END_CHARACTERS = 12

/** However it is wrapped. */
const withoutSpace = (text: string): string => text.replaceAll(/\s+/g, '')

const countOf = (part: string, text: string): number => (part === '' ? 0 : text.split(part).length - 1)
