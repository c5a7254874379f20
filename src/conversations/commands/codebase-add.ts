import { addCodebase } from '../../isolation/codebases.ts'
import type { Added } from '../../isolation/codebase-register.ts'
import { type Call, command, textOf } from './command.ts'
import { codebaseJson } from './json.ts'
import { facts, tilde, type View } from './view.ts'

const run = async (call: Call): Promise<Added> => {
  const name = textOf(call.values, 'name')
  const github = textOf(call.values, 'github')
  const { context } = await call.open()
  const added = await addCodebase(context, call.words[0] ?? '', call.cwd, {
    signal: call.signal,
    ...(name !== undefined && { name }),
    ...(github !== undefined && { github }),
  })
  if (!added.isNew && name !== undefined && name !== added.codebase.name) {
    call.notice(`it is registered as ${added.codebase.name} already, and keeps that name`)
  }
  return added
}

const toText = ({ codebase, isNew }: Added, view: View): string =>
  [
    `${view.paint('green', isNew ? 'Registered' : 'Already registered:')} ${view.paint('bold', codebase.name)}`,
    facts(
      [
        ['  at', tilde(codebase.checkoutPath ?? codebase.repoPath, view)],
        ['  remote', codebase.remoteUrl ?? 'none'],
        ...(codebase.github === undefined ? [] : [['  GitHub', codebase.github] as const]),
      ],
      view,
    ),
  ].join('\n')

export const codebaseAdd = command<Added>({ run, toText, toJson: ({ codebase }) => codebaseJson(codebase) })
