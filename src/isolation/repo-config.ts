import { type RepoConfig, defaultRepoConfig, parseRepoConfig } from '../domain/config.ts'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { type Sha, toRepoPath } from '../domain/names.ts'
import { showFile } from '../git/objects.ts'
import type { IsolationContext } from './context.ts'

const configPath = '.coppice/config.yaml'

/**
 * The repository's own settings, as the base commit has them: never from the work's branch, whose author may be
 * anybody, and never from the checkout, where it may be half edited.
 */
export const loadRepoConfig = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  baseSha: Sha,
): Promise<RepoConfig> => {
  const bytes = await showFile(context.git, { commonDir: toRepoPath(codebase.repoPath) }, baseSha, configPath)
  if (bytes === undefined) return defaultRepoConfig
  const file = `${configPath} (at ${baseSha.slice(0, 7)})`
  return parseRepoConfig(decode(bytes, file), file)
}

const decode = (bytes: Buffer, file: string): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new AppError('config-invalid', `${file} is not UTF-8 text`, { cause: error, remedy: 'save it as UTF-8' })
  }
}
