import { type Fields, textOf } from '../fields.ts'
import { toolLine, type ToolLine, displayPath, editing, firstLine, running } from '../tool-line.ts'

/** Describes a Claude Code tool call in a few words. */
export const claudeToolLine = (tool: string, input: Fields, directory: string): ToolLine => {
  const path = textOf(input['file_path']) ?? textOf(input['notebook_path'])
  const pattern = textOf(input['pattern'])
  const command = textOf(input['command'])
  switch (tool) {
    case 'Edit':
    case 'MultiEdit':
    case 'NotebookEdit':
      return path === undefined ? using(tool) : editing([path], directory)
    case 'Write':
      return path === undefined ? using(tool) : toolLine('writing', 'write', displayPath(path, directory))
    case 'Read':
      return path === undefined ? using(tool) : toolLine('reading', 'read', displayPath(path, directory))
    case 'Bash':
      return command === undefined ? using(tool) : running(command)
    case 'Glob':
    case 'Grep':
      return pattern === undefined ? using(tool) : toolLine('searching for', 'search for', firstLine(pattern))
    case 'WebFetch':
      return toolLine('fetching', 'fetch', textOf(input['url']) ?? 'a page')
    case 'WebSearch':
      return toolLine('searching the web for', 'search the web for', textOf(input['query']) ?? 'something')
    case 'AskUserQuestion':
      return toolLine('asking', 'ask', 'a question')
    case 'Agent':
    case 'Task':
      return toolLine('starting a subagent:', 'start a subagent:', textOf(input['description']) ?? 'work')
    default:
      return using(tool)
  }
}

const using = (tool: string): ToolLine => toolLine('using', 'use', tool)
