import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A real file system of 2 MB: a disk that never fills up shows nothing. */
export type SmallDisk = {
  readonly at: string
  /** What has to stand before a program that is to see the disk. */
  readonly through: readonly string[]
  /** Runs where the disk can be seen. */
  sh(script: string): string
  [Symbol.dispose](): void
}

export const noSmallDisk =
  'a full disk was NOT tested: making a small one takes root, or a kernel that lets users have namespaces of their own'

/** Root mounts it. Any other user does so in a namespace, which a process of ours holds open. */
export const makeSmallDisk = async (): Promise<SmallDisk | undefined> => {
  const at = mkdtempSync(join(tmpdir(), 'coppice-full-'))
  const mount = `mount -t tmpfs -o size=2m,mode=0700 tmpfs '${at}'`
  if (process.getuid?.() === 0) {
    execFileSync('sh', ['-c', mount])
    return disk(at, [], () => execFileSync('umount', ['-l', at]))
  }
  const holder = spawn(
    'unshare',
    ['--user', '--map-root-user', '--mount', 'sh', '-c', `${mount} && echo ready && cat`],
    {
      stdio: ['pipe', 'pipe', 'ignore'],
    },
  )
  if (!(await isReady(holder))) {
    rmSync(at, { recursive: true, force: true })
    console.warn(noSmallDisk)
    return undefined
  }
  const enter = ['nsenter', '--target', String(holder.pid), '--user', '--mount', '--preserve-credentials']
  return disk(at, enter, () => holder.kill('SIGKILL'))
}

const disk = (at: string, through: readonly string[], end: () => unknown): SmallDisk => ({
  at,
  through,
  sh: (script) => {
    const [command, ...args] = [...through, 'sh', '-c', script]
    return execFileSync(command, args, { encoding: 'utf8' })
  },
  [Symbol.dispose]: () => {
    end()
    rmSync(at, { recursive: true, force: true })
  },
})

/** It says so, or ends without having said it; a machine without the program ends with an error. */
const isReady = (holder: ChildProcess): Promise<boolean> =>
  new Promise((done) => {
    holder.stdout?.once('data', () => done(true))
    holder.once('error', () => done(false))
    holder.once('close', () => done(false))
  })
