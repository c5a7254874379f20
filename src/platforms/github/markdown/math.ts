import type { Block, Found } from './blocks.ts'

/** No formula begins before these offsets; otherwise every `$` on a long line would search to its end. */
export type Formulas = { noneBefore: number; noDisplayBefore: number }

export const createFormulas = (): Formulas => ({ noneBefore: 0, noDisplayBefore: 0 })

/** TeX that hides text, or shows it too small, too pale or elsewhere; and anything that defines or includes. */
const hidingTex =
  /%|\\(?:[hv]?phantom|(?:text|f|page)?color|style|class|cssId|smash|mathllap|mathrlap|mathclap|[lrc]lap|m?kern|[hm]skip|hspace|raise|lower|tiny|scriptscriptstyle|require|let|[gex]?def|(?:re)?newcommand|newenvironment|if|href|unicode|bbox|rule|mathchoice)/

/**
 * `$…$` and `$$…$$`, which the page renders as TeX. Which `$` pair up depends on their surroundings, so everything from
 * the first to the last counts as one: code, or hidden if TeX may hide something. Without a backslash or percent sign
 * in between, they are prices and variables.
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

/** Not a price: a closing `$` follows no blank and precedes no letter or digit. */
const lastClosing = (text: string, at: number, end: number): number => {
  let last = text.lastIndexOf('$', end - 1)
  while (last > at && !(/\S/.test(text.charAt(last - 1)) && !/\w/.test(text.charAt(last + 1)))) {
    last = text.lastIndexOf('$', last - 1)
  }
  return last
}

const found = (formula: string, at: number): Found | undefined => {
  if (!/[\\%]/.test(formula)) return undefined
  return { kind: hidingTex.test(formula) ? 'hidden' : 'code', end: at + formula.length }
}

const isEscaped = (text: string, at: number): boolean => {
  let backslashes = 0
  while (text[at - 1 - backslashes] === '\\') backslashes += 1
  return backslashes % 2 === 1
}
