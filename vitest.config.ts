import { statfsSync } from 'node:fs'
import { availableParallelism, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, ForksPoolWorker, type PoolRunnerInitializer, type TestSpecification } from 'vitest/node'

/** Most of the tests' time is waiting for the disk to sync; in memory they are several times as fast. */
const temporary = (): string => {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > 2 * 1024 ** 3 ? '/dev/shm' : tmpdir()
  } catch {
    return tmpdir()
  }
}

/**
 * Starting a process copies the page tables of its parent: each megabyte of a worker costs about 50 µs, and the suite
 * starts tens of thousands of processes. The variables make glibc give memory back and let threads share one arena.
 */
const smallWorkers = {
  execArgv: ['--max-semi-space-size=1', '--optimize-for-size'],
  env: { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '65536' },
}

/**
 * A worker runs one test file after the other: starting it and loading half of Coppice takes longer than many files
 * run. One that has grown is replaced, since every process it starts would take longer.
 */
class ReusedWorker extends ForksPoolWorker {
  override readonly name = reusedWorkers.name
  readonly reportMemory = true
  #heap = 0

  override async start(): Promise<void> {
    await super.start()
    this.on('message', ({ usedMemory = 0 }: { usedMemory?: number }) => {
      this.#heap = Math.max(this.#heap, usedMemory)
    })
  }

  canReuse(): boolean {
    return this.#heap < 48 * 1024 ** 2
  }
}

const reusedWorkers: PoolRunnerInitializer = {
  name: 'reused-workers',
  createPoolWorker: (options) => new ReusedWorker(options),
}

/**
 * Without a cache of earlier runs, vitest starts the largest files first. Those that start many processes take longest,
 * and one that starts last would run alone.
 */
class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => slowest.findIndex((part) => moduleId.includes(part))
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

/** Parts of paths; every path has the last one. */
const slowest = ['test/crash/failpoints', 'test/security/', 'test/crash/', 'test/isolation/', 'test/e2e/', 'test/', '']

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [
      'test/crash/syscalls/**',
      'test/agents/**',
      'test/load/**',
      'test/soak/**',
      'test/deploy/**',
      'node_modules/**',
    ],
    env: {
      TMPDIR: temporary(),
      // Hundreds of processes are started from source: with this each takes half as long to load.
      NODE_COMPILE_CACHE: join(temporary(), `coppice-compile-cache-${userInfo().uid}`),
      ...smallWorkers.env,
    },
    pool: reusedWorkers,
    isolate: false,
    execArgv: smallWorkers.execArgv,
    // Most tests wait for git, a server or an agent: as many workers as cores would leave cores idle.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: ProcessesFirst },
    // Many tests start several processes: on a busy machine that takes a while.
    testTimeout: 180_000,
    hookTimeout: 120_000,
    // What is waited for comes within milliseconds, but not on a machine that is busy with something else.
    expect: { poll: { timeout: 30_000, interval: 20 } },
    globalSetup: ['test/helpers/global-setup.ts'],
  },
})
