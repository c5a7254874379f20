import { AppError } from './errors.ts'

declare const brand: unique symbol
type Brand<T, Name extends string> = T & { readonly [brand]: Name }

/** The absolute path of a repository's common git directory (`.git` of a checkout, or a bare repository). */
export type RepoPath = Brand<string, 'RepoPath'>
/** A branch name that `git check-ref-format --branch` accepts and that can't be read as an option. */
export type BranchName = Brand<string, 'BranchName'>
export type EnvironmentId = Brand<string, 'EnvironmentId'>
export type CodebaseId = Brand<string, 'CodebaseId'>
/** A full object id, 40 or 64 hex digits. */
export type Sha = Brand<string, 'Sha'>

export const toEnvironmentId = (id: string): EnvironmentId => id as EnvironmentId
export const toCodebaseId = (id: string): CodebaseId => id as CodebaseId

export const toRepoPath = (path: string): RepoPath => {
  if (!path.startsWith('/') || path.includes('\0')) {
    throw new AppError('name-invalid', `not an absolute path: ${JSON.stringify(path)}`)
  }
  return path as RepoPath
}

export const isSha = (text: string): text is Sha => /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text)

export const toSha = (text: string): Sha => {
  if (!isSha(text)) throw new AppError('name-invalid', `not a full commit id: ${JSON.stringify(text.slice(0, 80))}`)
  return text
}

/** Why `git check-ref-format` would refuse the name, or git would read it as an option. */
export const branchNameProblem = (name: string): string | undefined => {
  if (name === '') return 'it is empty'
  if (name.length > 200) return 'it is longer than 200 characters'
  if (name.startsWith('-')) return 'it starts with "-" and would be read as an option'
  if (name === '@' || name === 'HEAD') return `"${name}" is reserved by git`
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007f~^:?*[\\]/.test(name)) return 'it has a space, a control character or one of ~ ^ : ? * [ \\'
  // An unpaired surrogate reaches git as U+FFFD: not the name we recorded.
  if (!name.isWellFormed()) return 'it has an unpaired surrogate'
  if (name.includes('..')) return 'it has ".."'
  if (name.includes('@{')) return 'it has "@{"'
  if (name.startsWith('/') || name.endsWith('/') || name.includes('//')) return 'it has an empty part between slashes'
  if (name.endsWith('.')) return 'it ends with "."'
  const part = name.split('/').find((p) => p.startsWith('.') || p.endsWith('.lock'))
  if (part !== undefined) return `its part "${part}" starts with "." or ends with ".lock"`
  if (name.split('/').some((p) => Buffer.byteLength(p) > 200)) return 'one of its parts is longer than 200 bytes'
  if (name.startsWith('refs/')) return 'it starts with "refs/", which would hide a branch behind a full ref name'
  return undefined
}

export const toBranchName = (name: string): BranchName => {
  const problem = branchNameProblem(name)
  if (problem !== undefined) {
    throw new AppError('name-invalid', `${JSON.stringify(name.slice(0, 80))} isn't a valid branch name: ${problem}`, {
      remedy: 'use letters, digits, "-", "_", "." and "/"',
    })
  }
  return name as BranchName
}

/** Codebase names become directory names: one plain path segment. */
export const toCodebaseName = (name: string): string => {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name) || name.endsWith('.lock') || name.endsWith('.')) {
    throw new AppError('name-invalid', `${JSON.stringify(name.slice(0, 80))} isn't a valid codebase name`, {
      remedy: 'use letters, digits, ".", "_" and "-", starting with a letter or digit',
    })
  }
  return name
}
