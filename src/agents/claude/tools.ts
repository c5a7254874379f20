import { type Fields, textOf } from '../fields.ts'
import { deed, type Deed, edited, firstLine, ran, within } from '../tool-line.ts'

/** What a call of one of Claude Code's tools does, in a few words. */
export const claudeDeed = (tool: string, input: Fields, directory: string): Deed => {
  const path = textOf(input['file_path']) ?? textOf(input['notebook_path'])
  const pattern = textOf(input['pattern'])
  const command = textOf(input['command'])
  switch (tool) {
    case 'Edit':
    case 'MultiEdit':
    case 'NotebookEdit':
      return path === undefined ? used(tool) : edited([path], directory)
    case 'Write':
      return path === undefined ? used(tool) : deed('wrote', 'write', within(path, directory))
    case 'Read':
      return path === undefined ? used(tool) : deed('read', 'read', within(path, directory))
    case 'Bash':
      return command === undefined ? used(tool) : ran(command)
    case 'Glob':
    case 'Grep':
      return pattern === undefined ? used(tool) : deed('searched for', 'search for', firstLine(pattern))
    case 'WebFetch':
      return deed('fetched', 'fetch', textOf(input['url']) ?? 'a page')
    case 'WebSearch':
      return deed('searched the web for', 'search the web for', textOf(input['query']) ?? 'something')
    case 'Agent':
    case 'Task':
      return deed('started a subagent:', 'start a subagent:', textOf(input['description']) ?? 'work')
    default:
      return used(tool)
  }
}

const used = (tool: string): Deed => deed('used', 'use', tool)
