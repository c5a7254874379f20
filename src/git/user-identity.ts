import { isUserScope, lastValue } from './config-entries.ts'
import type { Git, Repo } from './door.ts'

/** Who commits: as the user's own configuration says, else the repository's. Undefined if neither does. */
export const userIdentity = async (
  git: Git,
  repo: Repo,
): Promise<{ readonly name: string; readonly email: string } | undefined> => {
  const all = await git.config(repo)
  for (const entries of [all.filter(isUserScope), all.filter(({ scope }) => scope === 'local')]) {
    const [name, email] = ['user.name', 'user.email'].map((key) => lastValue(entries, key)?.trim())
    if (name && email) return { name, email }
  }
  return undefined
}
