import { resolve } from 'node:path'
import type { AgentQuestion } from '../question.ts'
import type { AgentRules } from '../agent.ts'
import { belongsToGit, containedPath } from '../contained-path.ts'
import { type Fields, listOf, textOf } from '../fields.ts'
import { EDITS } from './arguments.ts'
import { claudeToolLine } from './tools.ts'

/** A tool call that Claude Code asks about: its mode and rules didn't decide it. */
export type ToolCall = {
  readonly tool: string
  readonly input: Fields
  /** Why it asks: "workingDir", "safetyCheck", … */
  readonly reason: string | undefined
}

export type ToolDecision = { readonly ask: AgentQuestion } | { readonly denied: string }

/** Denies what the rules or the worktree rule out, without asking. Never allows: the user does. */
export const decideTool = async (
  { root, rules }: { readonly root: string; readonly rules: AgentRules },
  call: ToolCall,
): Promise<ToolDecision> => {
  const { tool, input, reason } = call
  if (rules.access === 'read') return { denied: 'this run is read-only' }
  // A rule such as `Bash(git log *)` was already applied by Claude Code, and didn't match.
  if (rules.allowedTools.length > 0 && !rules.allowedTools.includes(tool)) {
    return { denied: "this tool isn't one of those allowed here" }
  }
  if (EDITS.includes(tool)) {
    const path = textOf(input['file_path']) ?? textOf(input['notebook_path'])
    if (reason === 'workingDir' || path === undefined || !(await isEditable(root, path))) {
      return { denied: 'the file is outside the worktree, or belongs to git' }
    }
  }
  return { ask: { kind: 'permission', agent: 'claude', ...wishOf(call, root) } }
}

const isEditable = async (root: string, path: string): Promise<boolean> => {
  if (path.startsWith('~') || path.includes('\0')) return false
  const real = await containedPath(root, resolve(root, path)).catch(() => undefined)
  return real !== undefined && !(await belongsToGit(root, real))
}

const wishOf = ({ tool, input }: ToolCall, root: string): { readonly what: string; readonly detail?: string } => {
  const command = textOf(input['command'])
  if (tool === 'Bash' && command !== undefined) return { what: 'run a command', detail: command }
  if (tool === 'ExitPlanMode') {
    const plan = textOf(input['plan'])
    return { what: 'carry out its plan', ...(plan !== undefined && { detail: plan }) }
  }
  const what = claudeToolLine(tool, input, root).wish
  const detail = EDITS.includes(tool) ? changeIn(input) : isReading(tool) ? undefined : JSON.stringify(input)
  return { what, ...(detail !== undefined && detail !== '{}' && { detail }) }
}

const isReading = (tool: string): boolean => ['Read', 'Glob', 'Grep', 'WebFetch', 'WebSearch'].includes(tool)

/** Old lines with a minus, new ones with a plus. */
const changeIn = (input: Fields): string | undefined => {
  const edits = listOf(input['edits'])
  const changes = (edits.length > 0 ? edits : [input]).flatMap((edit) => [
    ...marked('-', textOf(edit['old_string'])),
    ...marked('+', textOf(edit['new_string']) ?? textOf(edit['content']) ?? textOf(edit['new_source'])),
  ])
  return changes.length === 0 ? undefined : changes.join('\n')
}

const marked = (mark: string, text: string | undefined): string[] =>
  text === undefined || text === '' ? [] : text.split('\n').map((line) => `${mark} ${line}`)
