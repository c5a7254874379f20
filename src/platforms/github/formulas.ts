import type { Block, Found } from './blocks.ts'

/** Up to where it is known that no formula begins: otherwise every `$` of a long line would look to its end. */
export type Formulas = { noneBefore: number; noDisplayBefore: number }

export const createFormulas = (): Formulas => ({ noneBefore: 0, noDisplayBefore: 0 })

/** What TeX does not show, or shows too small, too pale or elsewhere; and whatever defines or includes anything. */
const unseen =
  /%|\\(?:[hv]?phantom|(?:text|f|page)?color|style|class|cssId|smash|mathllap|mathrlap|mathclap|[lrc]lap|m?kern|[hm]skip|hspace|raise|lower|tiny|scriptscriptstyle|require|let|[gex]?def|(?:re)?newcommand|newenvironment|if|href|unicode|bbox|rule|mathchoice)/

/**
 * `$…$` and `$$…$$`, which the page hands to TeX. Which `$` belong together depends on what stands around them, so all
 * from the first to the last counts as one: code, or hidden where TeX may hide something. Without a backslash or a
 * percent sign in between, they are prices and variables.
 */
export const formulaAt = (text: string, at: number, block: Block, formulas: Formulas): Found | undefined => {
  if (isEscaped(text, at)) return undefined
  return displayAt(text, at, formulas) ?? inlineAt(text, at, block, formulas)
}

const displayAt = (text: string, at: number, formulas: Formulas): Found | undefined => {
  if (text[at + 1] !== '$' || at < formulas.noDisplayBefore) return undefined
  const last = text.lastIndexOf('$$')
  formulas.noDisplayBefore = last
  return last > at + 1 ? found(text.slice(at, last + 2), at) : undefined
}

const inlineAt = (text: string, at: number, block: Block, formulas: Formulas): Found | undefined => {
  if (at < formulas.noneBefore) return undefined
  const last = lastClosing(text, at, block.end)
  formulas.noneBefore = block.end
  return last > at ? found(text.slice(at, last + 1), at) : undefined
}

/** A price is none: `$` closes after no blank and before no letter or digit. */
const lastClosing = (text: string, at: number, end: number): number => {
  let last = text.lastIndexOf('$', end - 1)
  while (last > at && !(/\S/.test(text.charAt(last - 1)) && !/\w/.test(text.charAt(last + 1)))) {
    last = text.lastIndexOf('$', last - 1)
  }
  return last
}

const found = (formula: string, at: number): Found | undefined => {
  if (!/[\\%]/.test(formula)) return undefined
  return { kind: unseen.test(formula) ? 'hidden' : 'code', end: at + formula.length }
}

const isEscaped = (text: string, at: number): boolean => {
  let backslashes = 0
  while (text[at - 1 - backslashes] === '\\') backslashes += 1
  return backslashes % 2 === 1
}
