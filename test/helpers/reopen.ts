import { join } from 'node:path'
import { createGit } from '../../src/git/door.ts'
import type { Sandbox } from './repo.ts'

/**
 * The sandbox as a child process sees it. Only what a context is made from: it did not make the world and will not take
 * it down.
 */
export const reopen = (root: string): Sandbox => {
  const given = ['PATH', 'HOME', 'LC_ALL', 'TMPDIR'].map((name) => [name, process.env[name]] as const)
  const env = Object.fromEntries(given.filter((one): one is [string, string] => one[1] !== undefined))
  const never = (): never => {
    throw new Error('the child only works in the world it was given')
  }
  return {
    root,
    home: join(root, 'home'),
    env,
    git: (options) => createGit({ env, home: join(root, 'state'), now: Date.now, ...options }),
    path: (...parts) => join(root, ...parts),
    raw: never,
    repo: never,
    repoWithOrigin: never,
    bare: never,
    [Symbol.dispose]: never,
  }
}
