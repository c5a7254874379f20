import { repoOf } from './repo-of.ts'
import { type RepoConfig, defaultRepoConfig, parseRepoConfig } from '../../domain/config/repository.ts'
import { maxConfigLength, configTooLong } from '../../domain/config/size.ts'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { Sha } from '../../domain/names.ts'
import type { Git, Repo } from '../../git/door.ts'
import { showFile } from '../../git/objects.ts'
import type { IsolationContext } from '../context.ts'

const configPath = '.coppice/config.yaml'

/**
 * The repository's own settings from the base commit: not from the work's branch, which anybody may have written, nor
 * from the checkout, where it may be half edited.
 */
export const loadRepoConfig = async (
  context: Pick<IsolationContext, 'git' | 'store' | 'log' | 'repoConfigs'>,
  codebase: Codebase,
  baseSha: Sha,
): Promise<RepoConfig> => {
  const known = context.repoConfigs.get(codebase.id)
  if (known?.sha === baseSha) return known.config
  const file = `${configPath} (at ${baseSha.slice(0, 7)})`
  const text = await configText(context, codebase, baseSha, file)
  const config = text === undefined ? defaultRepoConfig : await parseRepoConfig(text, file)
  context.repoConfigs.set(codebase.id, { sha: baseSha, config })
  return config
}

/** Undefined: the commit has no such file. Recorded, since a commit never changes: it saves every command a process. */
const configText = async (
  { git, store, log }: Pick<IsolationContext, 'git' | 'store' | 'log'>,
  codebase: Codebase,
  baseSha: Sha,
  file: string,
): Promise<string | undefined> => {
  if (codebase.configCommit === baseSha) return codebase.configText
  const text = await readText(git, codebase, baseSha, file)
  try {
    await store.codebases.update(codebase.id, { configCommit: baseSha, configText: text })
  } catch (error) {
    log.warn("couldn't record the repository's settings", { codebase: codebase.name, error })
  }
  return text
}

const readText = async (git: Git, codebase: Codebase, baseSha: Sha, file: string): Promise<string | undefined> => {
  const repo = repoOf(codebase)
  if (!(await hasConfig(git, repo, baseSha, file))) return undefined
  const bytes = await showFile(git, repo, baseSha, configPath)
  if (bytes === undefined) throw new AppError('git-failed', `git has no content for ${file}`)
  return decode(bytes, file)
}

/**
 * Checked separately, because `cat-file` says "missing" both if the commit lacks the file and if the commit itself is
 * missing: the latter must not count as "no settings, so nothing to keep".
 */
const hasConfig = async (git: Git, repo: Repo, baseSha: Sha, file: string): Promise<boolean> => {
  const args = ['ls-tree', '-z', '-l', '--full-tree', baseSha, '--', configPath]
  const { stdout } = await git.run({ operation: 'ls-tree', at: repo, args })
  if (stdout === '') return false
  const size = /^100(?:644|755) blob [0-9a-f]+ +(\d+)\t/.exec(stdout)?.[1]
  // Check before reading: a blob can be as large as memory.
  if (size !== undefined && Number(size) > maxConfigLength) throw configTooLong(file, Number(size))
  if (size !== undefined) return true
  throw new AppError('config-invalid', `${file} is not a regular file`, {
    remedy: 'replace it with a regular file on the base branch',
  })
}

const decode = (bytes: Buffer, file: string): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new AppError('config-invalid', `${file} is not UTF-8 text`, { cause: error, remedy: 'save it as UTF-8' })
  }
}
