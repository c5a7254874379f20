import { chooseAgent } from '../agents/registry.ts'
import type { Codebase } from '../domain/environment.ts'
import { findBase } from '../isolation/codebases/base.ts'
import { addCodebase } from '../isolation/codebases/codebases.ts'
import type { Added } from '../isolation/codebases/register.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { agentsOf } from './agents.ts'
import { bindCodebase } from './codebase-bind.ts'
import { type Call, type ChatCall, command, cwdOf, textOf } from './command.ts'
import { assertWholeServer } from './target.ts'
import { codebaseJson } from './views/json.ts'
import { code, facts, tilde, type View } from './views/view.ts'

export type AddResult = Added & {
  /** The calling conversation is now bound to it. */
  readonly bound: boolean
}

const run = async (call: Call): Promise<AddResult> => {
  if (call.chat !== undefined) return clone(call, call.chat)
  const name = textOf(call.values, 'name')
  const github = textOf(call.values, 'github')
  const { context } = await call.open()
  const added = await addCodebase(context, call.words[0] ?? '', cwdOf(call), {
    signal: call.signal,
    ...(name !== undefined && { name }),
    ...(github !== undefined && { github }),
  })
  if (!added.isNew && name !== undefined && name !== added.codebase.name) {
    call.notice(`already registered as ${added.codebase.name}; --name has no effect`)
  }
  return { ...added, codebase: await configured(call, context, added.codebase), bound: false }
}

/** `--base` and `--agent`; an empty value resets to the default. */
const configured = async (call: Call, context: IsolationContext, codebase: Codebase): Promise<Codebase> => {
  const base = textOf(call.values, 'base')
  const agent = textOf(call.values, 'agent')
  if (base) await findBase(context, codebase, base, { signal: call.signal })
  if (agent) await chooseAgent({ ...context, agents: agentsOf(context), wanted: undefined, codebaseDefault: agent })
  const patch = {
    ...(base !== undefined && { base: base || undefined }),
    ...(agent !== undefined && { defaultAgent: agent || undefined }),
  }
  await context.store.codebases.update(codebase.id, patch)
  return { ...codebase, ...patch }
}

/** A chat has no directory, so it clones the repository and is then bound to it. */
const clone = async (call: Call, chat: ChatCall): Promise<AddResult> => {
  assertWholeServer(chat, '/clone')
  const { context } = await call.open()
  const { addClone } = await import('../isolation/codebases/clone-repository.ts')
  const added = await addClone(context, call.words[0] ?? '', { signal: call.signal, onlyPublic: true })
  await bindCodebase(context, chat, added.codebase)
  return { ...added, bound: true }
}

const toText = ({ codebase, isNew, bound }: AddResult, view: View): string => {
  if (bound) {
    return `${isNew ? 'Cloned' : 'Already registered:'} ${code(codebase.name, view)}. This conversation now uses it.`
  }
  return [
    `${view.paint('green', isNew ? 'Registered' : 'Already registered:')} ${code(codebase.name, view)}`,
    facts(
      [
        ['  at', tilde(codebase.checkoutPath ?? codebase.repoPath, view)],
        ['  remote', codebase.remoteUrl ?? 'none'],
        ...(codebase.github === undefined ? [] : [['  GitHub', codebase.github] as const]),
        ...(codebase.base === undefined ? [] : [['  base', codebase.base] as const]),
        ...(codebase.defaultAgent === undefined ? [] : [['  agent', codebase.defaultAgent] as const]),
      ],
      view,
    ),
  ].join('\n')
}

export const codebaseAdd = command<AddResult>({ run, toText, toJson: ({ codebase }) => codebaseJson(codebase) })
