/**
 * A path inside a worktree. Git's paths are bytes and need not be UTF-8: `path` is for people and comparison with
 * configuration, `bytes` for the file system. Using the text of a latin1 name would look for a file that is not there.
 */
export type TreePath = { readonly path: string; readonly bytes: Buffer }

export const treePath = (bytes: Buffer): TreePath => ({ path: bytes.toString('utf8'), bytes })

/** `directory/path` as bytes, which every function of `node:fs` takes. */
export const joinTreePath = (directory: string, { bytes }: Pick<TreePath, 'bytes'>): Buffer =>
  Buffer.concat([Buffer.from(`${directory}/`), bytes])

/** The parts between NULs; nothing after the last one. */
export const splitNul = (output: Buffer): Buffer[] => {
  const parts: Buffer[] = []
  let start = 0
  for (let end = output.indexOf(0); end >= 0; end = output.indexOf(0, start)) {
    parts.push(output.subarray(start, end))
    start = end + 1
  }
  return parts
}
