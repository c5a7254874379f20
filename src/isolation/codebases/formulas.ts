import { createHash } from 'node:crypto'
import type { RepoConfig } from '../../domain/config/repository.ts'
import type { Codebase } from '../../domain/environment.ts'
import { parseFormula } from '../../domain/fleet/formula-file.ts'
import type { Formula } from '../../domain/fleet/formula.ts'
import { maxConfigLength } from '../../domain/config/size.ts'
import { AppError } from '../../domain/errors.ts'
import type { CallOptions } from '../../git/door.ts'
import { catFiles } from '../../git/blobs.ts'
import { listFolder } from '../../git/list-folder.ts'
import type { IsolationContext } from '../context.ts'
import { baseAndConfig } from './base-and-config.ts'
import { repoOf } from './repo-of.ts'

const folder = '.coppice/formulas'
const mostFormulas = 50

export type RepositoryFormulas = {
  readonly formulas: ReadonlyMap<string, Formula>
  /** By name, why one can't be used. */
  readonly problems: ReadonlyMap<string, AppError>
  readonly config: RepoConfig
}

/** The repository's own formulas, from its base commit: never from the work's branch, which its agent writes. */
export const repositoryFormulas = async (
  context: IsolationContext,
  codebase: Codebase,
  options: CallOptions = {},
): Promise<RepositoryFormulas> => {
  const { base, config } = await baseAndConfig(context, codebase, undefined, options)
  const repo = repoOf(codebase)
  const files = (await listFolder(context.git, repo, base.sha, folder, options)).flatMap(
    ({ name, sha, size, mode }) => {
      const called = /^([a-z][a-z0-9-]{0,49})\.ya?ml$/.exec(name)?.[1]
      const isReadable = mode.startsWith('100') && size !== undefined && size <= maxConfigLength
      return called === undefined ? [] : [{ called, sha, isReadable, file: `${folder}/${name}` }]
    },
  )
  const formulas = new Map<string, Formula>()
  const problems = new Map<string, AppError>()
  for (const { called, file } of files.filter(({ isReadable }, i) => !isReadable || i >= mostFormulas)) {
    problems.set(called, new AppError('config-invalid', `${file} isn't a small regular file`))
  }
  const readable = files.filter(({ called }) => !problems.has(called))
  const texts = new Map<string, string>()
  await catFiles(
    context.git,
    repo,
    readable.map(({ sha }) => sha),
    (sha, content) => void texts.set(sha, content.toString('utf8')),
    options,
  )
  for (const { called, sha, file } of readable) {
    try {
      formulas.set(called, parseFormula(called, texts.get(sha) ?? '', `${file} (at ${base.sha.slice(0, 7)})`))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      problems.set(called, error)
    }
  }
  return { formulas, problems, config }
}

/**
 * The commands that a repository's formulas run, and those that a branch has to pass to land, in a fixed order. An
 * approval covers exactly these.
 */
export const checkCommands = ({
  formulas,
  config,
}: Pick<RepositoryFormulas, 'formulas' | 'config'>): readonly string[] => [
  ...[...formulas.entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, { steps }]) => steps.flatMap((step) => (typeof step === 'string' ? [] : [step.run]))),
  ...config.landingGates,
]

export const checksDigest = (commands: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(commands)).digest('hex')

/** Whether a person has approved these commands as they are now. Asks once, if there is somebody to ask. */
export const mayRunChecks = async (
  { store, approve }: Pick<IsolationContext, 'store' | 'approve'>,
  codebase: Codebase,
  commands: readonly string[],
): Promise<boolean> => {
  if (commands.length === 0) return true
  const digest = checksDigest(commands)
  // Read again: somebody may have approved it since.
  const current = await store.codebases.get(codebase.id)
  if (current?.trustedChecks === digest) return true
  if ((await approve?.({ codebase: codebase.name, commands, forks: false })) !== true) return false
  await store.codebases.update(codebase.id, { trustedChecks: digest })
  return true
}
