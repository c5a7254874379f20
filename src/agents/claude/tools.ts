import { type Fields, textOf } from '../fields.ts'
import { toolLine, type ToolLine, edited, firstLine, ran, displayPath } from '../tool-line.ts'

/** Describes a Claude Code tool call in a few words. */
export const claudeToolLine = (tool: string, input: Fields, directory: string): ToolLine => {
  const path = textOf(input['file_path']) ?? textOf(input['notebook_path'])
  const pattern = textOf(input['pattern'])
  const command = textOf(input['command'])
  switch (tool) {
    case 'Edit':
    case 'MultiEdit':
    case 'NotebookEdit':
      return path === undefined ? used(tool) : edited([path], directory)
    case 'Write':
      return path === undefined ? used(tool) : toolLine('wrote', 'write', displayPath(path, directory))
    case 'Read':
      return path === undefined ? used(tool) : toolLine('read', 'read', displayPath(path, directory))
    case 'Bash':
      return command === undefined ? used(tool) : ran(command)
    case 'Glob':
    case 'Grep':
      return pattern === undefined ? used(tool) : toolLine('searched for', 'search for', firstLine(pattern))
    case 'WebFetch':
      return toolLine('fetched', 'fetch', textOf(input['url']) ?? 'a page')
    case 'WebSearch':
      return toolLine('searched the web for', 'search the web for', textOf(input['query']) ?? 'something')
    case 'Agent':
    case 'Task':
      return toolLine('started a subagent:', 'start a subagent:', textOf(input['description']) ?? 'work')
    default:
      return used(tool)
  }
}

const used = (tool: string): ToolLine => toolLine('used', 'use', tool)
