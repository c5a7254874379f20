/*
 * What a new environment gets besides its checkout. In: the repository's configuration. Out: copied files, links,
 * submodules, and a finished setup, or notices why not.
 */
import type { Notice } from '../../../../domain/notice.ts'
import { isTrusted, privilegesOf } from '../../../../domain/trust.ts'
import type { IsolationContext } from '../../../context.ts'
import { mayRunScripts } from '../../../trust.ts'
import { writeBeadsRedirect } from './beads.ts'
import { copyFiles } from './copy-files.ts'
import type { Provisioning } from './provisioning.ts'
import { makeLinks } from './links.ts'
import { leasePorts } from '../../../ports.ts'
import { runSetup } from './scripts.ts'
import { fetchSubmodules } from './submodules.ts'

export type Provisioned = {
  /** Files and links created now, without those that already existed. */
  readonly copied: number
  readonly linked: number
  readonly ranSetup: boolean
  readonly notices: readonly Notice[]
}

/**
 * Everything a tree gets besides its commit, after git created it and before it is active. Each step keeps what exists,
 * so repeating it after a crash is harmless. Setup comes last: it may need all the others.
 */
export const provisionEnvironment = async (
  context: IsolationContext,
  provisioning: Provisioning,
): Promise<Provisioned> => {
  const { codebase, config, environment } = provisioning
  const { trust } = environment
  const forks = isTrusted(trust) ? undefined : await mayRunScripts(context, codebase, config, trust)
  const gets = privilegesOf(trust, forks?.run === true)
  const notices: Notice[] = []
  notices.push(...(await fetchSubmodules(context, provisioning, gets.submodules)))
  if (gets.files) notices.push(...(await writeBeadsRedirect(provisioning)))
  const copied = gets.files ? await copyFiles(context, provisioning) : { copied: 0, notices: [] }
  const linked = gets.files ? await makeLinks(context, provisioning) : { linked: 0, notices: [] }
  await leasePorts(context, environment, config.ports)
  const setup = gets.scripts ? await runSetup(context, provisioning) : { ran: false, notices: [] }
  notices.push(...copied.notices, ...linked.notices, ...setup.notices)
  if (!gets.scripts && forks?.run === false && forks.notice !== undefined) notices.push(forks.notice)
  return { copied: copied.copied, linked: linked.linked, ranSetup: setup.ran, notices }
}
