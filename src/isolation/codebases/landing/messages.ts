import type { Signature } from '../../../git/objects.ts'
import type { OwnCommit } from '../../../git/own-commits.ts'

type Named = { readonly branch: string; readonly title: string | undefined }

export const mergeMessage = (branch: string, title: string | undefined): string =>
  `Merge branch '${branch}'\n${title === undefined ? '' : `\n${title}\n`}`

/** All authors stay named: the first as author, the others as co-authors. */
export const squashMessage = (
  own: readonly OwnCommit[],
  { branch, title }: Named,
): { readonly message: string; readonly author: Signature | undefined } => {
  const written = own.filter(({ parents }) => parents.length <= 1)
  const [first] = written
  if (first !== undefined && written.length === 1) return { message: `${first.message}\n`, author: first.author }
  const others = new Set(written.map(({ author }) => `${author.name} <${author.email}>`))
  if (first !== undefined) others.delete(`${first.author.name} <${first.author.email}>`)
  const paragraphs = [
    title ?? `Land ${branch}`,
    written.map(({ message }) => `* ${message.trim().replaceAll('\n', '\n  ')}`).join('\n\n'),
    [...others].map((name) => `Co-authored-by: ${name}`).join('\n'),
  ]
  return { message: `${paragraphs.filter((one) => one !== '').join('\n\n')}\n`, author: first?.author }
}
