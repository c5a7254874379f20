import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export const canMount = process.platform === 'linux'

/**
 * Runs a module in a mount namespace of its own: what it mounts is seen by nobody else and vanishes with it. As root, or
 * as anybody where user namespaces are allowed. Elsewhere than on Linux it runs as it is and mounts nothing.
 */
export const runWithMounts = async <T>(module: string, order: unknown, cwd: string): Promise<T> => {
  const node = [process.execPath, module, JSON.stringify(order)] as const
  const unshare = ['unshare', process.getuid?.() === 0 ? '-m' : '-Urm', '--propagation', 'private'] as const
  if (canMount) await assertAllowed(unshare)
  const [command, ...args] = canMount ? [...unshare, ...node] : node
  const { stdout } = await promisify(execFile)(command, args, { cwd, maxBuffer: 64 * 1024 * 1024 })
  return JSON.parse(stdout) as T
}

const assertAllowed = async ([command, ...args]: readonly [string, ...string[]]): Promise<void> => {
  try {
    await promisify(execFile)(command, [...args, 'mount', '-t', 'tmpfs', 'none', '/mnt'])
  } catch (cause) {
    throw new Error(
      'these tests mount file systems: run them as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)',
      { cause },
    )
  }
}
