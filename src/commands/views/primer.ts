import type { Codebase } from '../../domain/environment.ts'
import { fillPrompt } from '../../domain/fleet/prompt.ts'
import { withoutInvisible } from '../../domain/text/visible.ts'
import type { Attempt, Primer } from '../../fleet/prime.ts'
import { agentJson } from './agents.ts'
import { describeSentBack } from './landings.ts'
import { describeParkReason, describeUnhook, itemJson, placeJson, stateWord } from './items.ts'
import { describeUncommitted } from './uncommitted.ts'
import { ago, type View } from './view.ts'

/** The first thing an agent reads. Plain text, never cut. */
export const primerText = (primer: Primer, view: View): string =>
  primer.template === undefined ? primerInWords(primer, view) : rendered(primer.template, primer)

const primerInWords = (primer: Primer, view: View): string => {
  const { agent, item, environment, codebase, commits, uncommitted, attempts, after } = primer
  const who = agent.kind === 'crew' ? 'a member of the crew' : `a worker of the pool ${agent.pool ?? ''}`
  if (item === undefined) return `You are ${agent.name}, ${who}. You have no item yet: wait for one.`
  return [
    `You are ${agent.name}, ${who}. Your item is ${item.id}: ${item.title}`,
    ...(item.state === 'parked' ? ['It is parked: wait until a person decides.'] : []),
    ...(item.body.trim() === '' ? [] : ['', item.body.trim()]),
    '',
    `Repository: ${codebase.name}`,
    `Directory:  ${environment?.path ?? 'gone'}`,
    `Branch:     ${environment?.branch ?? 'gone'}`,
    `Priority:   ${item.priority} (0 is the most urgent)`,
    ...after.map((one) => `After:      item ${one.id}, ${one.title} (${stateWord(one.state)})`),
    ...(item.pullRequest === undefined ? [] : [`Pull request: ${item.pullRequest}`]),
    '',
    ...section(
      'Commits so far, newest first',
      commits.map(({ sha, subject }) => `${sha.slice(0, 7)} ${oneLine(subject)}`),
      'none',
    ),
    `Not committed: ${uncommitted === undefined ? 'unknown' : describeUncommitted(uncommitted) || 'nothing'}`,
    ...(attempts.length === 0
      ? []
      : section(
          'Earlier attempts',
          attempts.map((one) => attemptLine(one, view.now)),
          '',
        )),
    '',
    ...finishLines(primer),
  ].join('\n')
}

const section = (title: string, lines: readonly string[], none: string): string[] =>
  lines.length === 0 ? [`${title}: ${none}`] : [`${title}:`, ...lines.map((line) => `  ${line}`)]

/** It stays in its place in the list, whatever is in it. */
const oneLine = (text: string): string => withoutInvisible(text).replaceAll(/\s+/g, ' ')

const attemptLine = ({ at, agent, ended }: Attempt, now: number): string =>
  `${ago(at, now)}: ${agent ?? (typeof ended === 'object' && ended.kind === 'sent-back' ? 'sent back' : 'parked')}${agent === undefined ? '' : ' '}${typeof ended === 'string' ? describeUnhook(ended) : `: ${oneLine(describeEnd(ended))}`}`

const describeEnd = (ended: Exclude<Attempt['ended'], string>): string =>
  ended.kind === 'sent-back' ? describeSentBack(ended) : describeParkReason(ended)

const finishLines = ({ formula, item, codebase }: Primer): string[] => {
  const itemId = item?.id ?? 0
  return [
    'How to finish:',
    `  1. Commit everything on this branch. Don't push, and don't switch branches.`,
    `  2. Run \`coppice done\`${formula === undefined ? '' : ` (it ${whatFormulaDoes(formula, codebase)})`}. It ends this session.`,
    `  To give up the item: coppice done --mode discard (add --close if there is nothing to do).`,
    `  If you need a decision from a person: coppice item park ${itemId} "<your question>", then wait.`,
  ]
}

const whatFormulaDoes = (formula: string, { remote }: Pick<Codebase, 'remote'>): string => {
  switch (formula) {
    case 'push':
      return remote === undefined ? 'leaves the branch in the repository' : 'pushes the branch'
    case 'pr':
      return 'pushes the branch and opens a pull request'
    case 'land':
      return 'pushes the branch and queues it for the base branch'
    default:
      return `runs the repository's formula ${formula}`
  }
}

const rendered = (template: string, primer: Primer): string => {
  const { agent, item, environment, codebase } = primer
  return fillPrompt(template, {
    'item.id': String(item?.id ?? ''),
    'item.title': item?.title ?? '',
    'item.body': item?.body ?? '',
    agent: agent.name,
    branch: environment?.branch ?? '',
    codebase: codebase.name,
    directory: environment?.path ?? '',
    finish: finishLines(primer).join('\n'),
  })
}

export const primerJson = (primer: Primer) => {
  const { agent, item, codebase, environment, after, commits, uncommitted, attempts, formula, template } = primer
  return {
    item: item === undefined ? null : itemJson({ item, codebase: codebase.name, ready: false, agent, environment }),
    agent: agentJson({ agent, codebase: codebase.name, environment }),
    environment: environment === undefined ? null : placeJson(environment),
    after: after.map(({ id, title, state }) => ({ id, title, state })),
    commits: commits.map(({ sha, subject }) => ({ sha, subject })),
    uncommitted: uncommitted ?? null,
    attempts: attempts.map(({ at, agent: who, ended }) => ({
      at,
      agent: who ?? null,
      ended: typeof ended === 'string' ? ended : ended.kind,
      message: typeof ended === 'string' ? describeUnhook(ended) : describeEnd(ended),
    })),
    finish: { formula: formula ?? null, command: 'coppice done', discard: 'coppice done --mode discard' },
    ...(template !== undefined && { prompt: rendered(template, primer) }),
  }
}
