/**
 * A path inside a worktree. Git's paths are bytes and needn't be UTF-8: `path` is for people and comparison with
 * configuration, `bytes` for the file system. The text of a latin1 name would point to a file that doesn't exist.
 */
export type TreePath = { readonly path: string; readonly bytes: Buffer }

export const treePath = (bytes: Buffer): TreePath => ({ path: bytes.toString('utf8'), bytes })

/** `directory/path` as bytes, which all of `node:fs` accepts. */
export const joinTreePath = (directory: string, { bytes }: Pick<TreePath, 'bytes'>): Buffer =>
  Buffer.concat([Buffer.from(`${directory}/`), bytes])

/** NUL-terminated parts; ignores anything after the last NUL. */
export const splitNul = (output: Buffer): Buffer[] => {
  const parts: Buffer[] = []
  let start = 0
  for (let end = output.indexOf(0); end >= 0; end = output.indexOf(0, start)) {
    parts.push(output.subarray(start, end))
    start = end + 1
  }
  return parts
}
