import type { IsolationContext } from '../../isolation/context.ts'

/** Those that Archon and Coppice call by the same name, and what is configured here under Archon's name. */
export const knownAgents = ({ settings }: Pick<IsolationContext, 'settings'>): readonly string[] => [
  'claude',
  'codex',
  ...settings.acpAgents.map(({ name }) => name),
]
