import { setTimeout as delay } from 'node:timers/promises'
import type { Tmux, TmuxPane } from '../../process/tmux.ts'

/** A program that doesn't show its input gets Enter after this long. */
const SHOWN_MS = 1_500

/** The wait between the text's appearance and Enter. */
const SETTLED_MS = 100

/**
 * Pastes a text into a program's terminal and presses Enter. A program with its own input box may treat an Enter right
 * after the text as part of it: Claude Code after 1 of 25 pastes, Codex after most typed texts. So Enter is sent only
 * once the text is on the screen.
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

/**
 * The end of the text has appeared, or the placeholder of a long paste: `[Pasted text #1 +3 lines]`, `[Pasted Content
 * 1024 chars]`.
 */
export const isShown = (text: string, before: string, now: string): boolean => {
  const end = withoutSpace(text).slice(-END_CHARACTERS)
  return [end, '[Pasted'].some((part) => countOf(part, withoutSpace(now)) > countOf(part, withoutSpace(before)))
}

/** Short enough to fit on one line of an input box, most of the time. */
const END_CHARACTERS = 12

/** Ignores line wrapping. */
const withoutSpace = (text: string): string => text.replaceAll(/\s+/g, '')

const countOf = (part: string, text: string): number => (part === '' ? 0 : text.split(part).length - 1)
