import type { Codebase } from '../../domain/environment.ts'
import { branchNameProblem } from '../../domain/names.ts'
import { baseAndConfig } from '../../isolation/codebases/base-and-config.ts'
import { findBase } from '../../isolation/codebases/base.ts'
import type { ArchonCodebase } from '../../store/archon/archon.ts'
import { knownAgents } from './agents.ts'
import { adviseOnCommands } from './commands-advice.ts'
import { adviseOnConfig, readArchonConfig } from './config-advice.ts'
import type { Planning } from './planning.ts'

/** What is set for a repository here because it was in Archon. Nothing that is set already. */
export type RepositorySettings = { readonly base?: string; readonly agent?: string; readonly github?: string }

/** Its base branch and its agent, from Archon's row and the repository's `.archon/config.yaml`. */
export const settingsFor = async (
  planning: Planning,
  row: ArchonCodebase,
  codebase: Codebase,
): Promise<RepositorySettings> => {
  const config = await readArchonConfig(codebase)
  const base = await baseFor(planning, codebase, config?.baseBranch ?? row.defaultBranch)
  const agent = agentFor(planning, codebase, config?.assistant ?? row.assistant)
  if (config !== undefined) adviseOnConfig(planning, codebase, config)
  await adviseOnCommands(planning, codebase, row, config)
  return { ...(base !== undefined && { base }), ...(agent !== undefined && { agent }) }
}

/** Only if it would be another one here. A branch that is gone is named instead. */
const baseFor = async (
  { context, advice, signal }: Planning,
  codebase: Codebase,
  wanted: string | undefined,
): Promise<string | undefined> => {
  if (wanted === undefined || wanted === '' || codebase.base !== undefined) return undefined
  const now = await baseAndConfig(context, codebase, undefined, { signal }).catch(() => undefined)
  if (now?.config.base !== undefined || now?.base.branch === wanted) return undefined
  const found =
    branchNameProblem(wanted) === undefined &&
    (await findBase(context, codebase, wanted, { signal }).catch(() => undefined))
  if (!found) advice.push({ kind: 'base-missing', codebase: codebase.name, branch: wanted })
  return found ? wanted : undefined
}

const agentFor = (
  { context, advice }: Planning,
  codebase: Codebase,
  wanted: string | undefined,
): string | undefined => {
  if (wanted === undefined || wanted === '' || codebase.defaultAgent !== undefined) return undefined
  if (knownAgents(context).includes(wanted)) return wanted
  advice.push({ kind: 'unknown-agent', codebase: codebase.name, agent: wanted })
  return undefined
}
