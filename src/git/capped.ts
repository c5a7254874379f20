import type { Git, GitRequest } from './door.ts'

/** The output of a read, or undefined when it exceeds `maxBytes`: git is then stopped. */
export const runCapped = async (git: Git, request: GitRequest, maxBytes: number): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = []
  let size = 0
  try {
    await git.run({
      ...request,
      onStdout: (chunk) => {
        size += chunk.length
        if (size > maxBytes) throw new OutputTooLarge()
        chunks.push(chunk)
      },
    })
  } catch (error) {
    if (error instanceof OutputTooLarge) return undefined
    throw error
  }
  return Buffer.concat(chunks)
}

class OutputTooLarge extends Error {}
