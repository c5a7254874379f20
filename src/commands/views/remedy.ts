import type { Remedy, RemedyPart } from '../../domain/remedy.ts'
import { capitalized, withFullStop } from '../../domain/text/words.ts'
import { code, plain, type View } from './view.ts'

type Speaker = Pick<View, 'commandText' | 'chat'>

/** A remedy as text, with commands written for this surface. */
export const describeRemedy = (remedy: Remedy, view: Speaker): string => words(remedy, view).join('')

/** With a capital and a full stop, but none after a command to paste: `rm file.` means another file. */
export const remedySentence = (remedy: Remedy, view: Speaker): string => {
  const parts = partsOf(remedy)
  const [first = '', ...rest] = words(remedy, view)
  const text = [typeof parts[0] === 'string' || view.chat === true ? capitalized(first) : first, ...rest].join('')
  return isBare(parts, parts.length - 1, view) ? text : withFullStop(text)
}

const partsOf = (remedy: Remedy): Exclude<Remedy, string> => (typeof remedy === 'string' ? [remedy] : remedy)

const words = (remedy: Remedy, view: Speaker): string[] =>
  partsOf(remedy).map((part, i, parts) => {
    if (typeof part === 'string') return part
    const command = part.of === 'coppice' ? view.commandText(part.command) : part.command
    if (isBare(parts, i, view)) return command
    return view.chat === true ? inChat(command, parts[i + 1]) : `\`${command}\``
  })

/**
 * Who reads a chat may have no shell on the server. A command with a path of the server is of no use there; the server's
 * log has it.
 */
const inChat = (command: string, next: RemedyPart = ''): string => {
  if (command.startsWith('/')) return code(command, { chat: true, paint: plain })
  if (namesServerPath(command)) return 'ask whoever runs the server (its log has the command)'
  const isSaid = typeof next === 'string' && /^,? (?:on the server|there)\b/.test(next)
  return `${code(command, { chat: true, paint: plain })}${isSaid ? '' : ' on the server'}`
}

const namesServerPath = (command: string): boolean => /(?:^|[\s='"])[~/]/.test(command)

/** A remedy with a command that a chat doesn't show. */
export const isForServer = (remedy: Remedy, view: Speaker): boolean =>
  partsOf(remedy).some((part) => {
    const command =
      typeof part === 'string' ? '/' : part.of === 'coppice' ? view.commandText(part.command) : part.command
    return !command.startsWith('/') && namesServerPath(command)
  })

/** On a terminal, a command at the end, after a colon or alone, is bare for pasting. In a chat it is code. */
const isBare = (parts: Exclude<Remedy, string>, i: number, { chat }: Speaker): boolean => {
  const before = parts[i - 1]
  const isLast = i === parts.length - 1 && typeof parts[i] === 'object'
  return chat !== true && isLast && (before === undefined || (typeof before === 'string' && before.endsWith(': ')))
}
