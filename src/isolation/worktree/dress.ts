import { isTrusted, privilegesOf } from '../../domain/trust.ts'
import type { IsolationContext } from '../context.ts'
import { mayRunScripts } from '../trust.ts'
import { layBeadsRedirect } from './beads.ts'
import { copyFiles } from './copy-files.ts'
import type { Dressing } from './dressing.ts'
import { makeLinks } from './links.ts'
import { leasePorts } from './ports.ts'
import { runSetup } from './scripts.ts'
import { bringSubmodules } from './submodules.ts'

/**
 * All that a tree gets beside its commit, after git has made it and before it is active. Each step leaves alone what is
 * there already, so doing it again after a crash is harmless. Setup comes last: it may need all of the others.
 */
export const dressEnvironment = async (
  context: IsolationContext,
  dressing: Dressing,
): Promise<{ notices: string[] }> => {
  const { codebase, config, environment } = dressing
  const { trust } = environment
  const forks = isTrusted(trust) ? undefined : await mayRunScripts(context, codebase, config, trust)
  const gets = privilegesOf(trust, forks?.run === true)
  const notices: string[] = []
  notices.push(...(await bringSubmodules(context, dressing, gets.submodules)))
  if (gets.files) {
    notices.push(...(await layBeadsRedirect(dressing)))
    notices.push(...(await copyFiles(context, dressing)))
    notices.push(...(await makeLinks(context, dressing)))
  }
  await leasePorts(context, environment, config.ports)
  if (gets.scripts) notices.push(...(await runSetup(context, dressing)))
  else if (forks?.run === false && forks.notice !== undefined) notices.push(forks.notice)
  return { notices }
}
