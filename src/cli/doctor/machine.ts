import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Workplace } from '../../commands/command.ts'
import { exposedSecrets } from '../exposed-secrets.ts'
import { type Finding, look, ok, problem } from './finding.ts'
import { shellWord } from '../../domain/text/shell-word.ts'

/** The basics: git, the home, the database, the disk. */
export const examineMachine = async ({ context, databaseName }: Workplace): Promise<Finding[]> =>
  (
    await Promise.all([
      look('git', () => gitVersion(context)),
      look('home', () => homeMode(context.home)),
      look('config', () => configMode(context)),
      look('database', async () => [ok('database', databaseName)]),
      look('disk', () => diskSpace(context)),
    ])
  ).flat()

/** `merge-tree --write-tree`, which merges without a working tree, came with 2.38. */
const oldest = [2, 38] as const

const gitVersion = async ({ git }: Workplace['context']): Promise<Finding[]> => {
  const { stdout } = await git.run({ operation: 'version', at: { cwd: '/' }, args: ['--version'] })
  const [, text = stdout.trim(), major = '0', minor = '0'] = /((?<!\d)(\d+)\.(\d+)\S*)/.exec(stdout) ?? []
  const fine = Number(major) > oldest[0] || (Number(major) === oldest[0] && Number(minor) >= oldest[1])
  return [
    fine
      ? ok('git', text)
      : problem(
          'git',
          `${text} is too old`,
          `install git ${oldest.join('.')} or later, which Coppice needs to detect merged work`,
        ),
  ]
}

const homeMode = async (home: string): Promise<Finding[]> => {
  const { mode, uid } = await stat(home)
  const self = process.getuid?.()
  if (self !== undefined && uid !== self) {
    return [
      problem(
        'home',
        `${home} belongs to another user`,
        `run coppice as that user, or choose another home with COPPICE_HOME`,
      ),
    ]
  }
  return (mode & 0o077) === 0
    ? [ok('home', home)]
    : [problem('home', `other users can read ${home}`, `chmod 700 ${shellWord(home)}`)]
}

const configMode = async (context: Workplace['context']): Promise<Finding[]> => {
  const exposed = exposedSecrets(context)
  return exposed === undefined ? [] : [problem('config', exposed.problem, exposed.remedy)]
}

/** Room for a checkout of a large repository and a restore point. */
const leastBytes = 500 * 1024 * 1024

const diskSpace = async ({ home, worktreesBase }: Workplace['context']): Promise<Finding[]> => {
  const places = await Promise.all([home, worktreesBase].map(async (path) => ({ path, ...(await spaceAt(path)) })))
  const different = places.filter(({ device }, i) => places.findIndex((other) => other.device === device) === i)
  return different.map(({ path, free }) =>
    free >= leastBytes
      ? ok('disk', `${megabytes(free)} free at ${path}`)
      : problem(
          'disk',
          `only ${megabytes(free)} free at ${path}`,
          'free up space; `coppice cleanup` removes merged and stale worktrees',
        ),
  )
}

const spaceAt = async (path: string): Promise<{ device: number; free: number }> => {
  try {
    const [{ bavail, bsize }, { dev }] = await Promise.all([statfs(path), stat(path)])
    return { device: dev, free: bavail * bsize }
  } catch (error) {
    // The worktrees' root is created with the first worktree.
    if (dirname(path) === path) throw error
    return spaceAt(dirname(path))
  }
}

const megabytes = (bytes: number): string =>
  bytes >= 1024 ** 3 ? `${(bytes / 1024 ** 3).toFixed(1)} GB` : `${Math.floor(bytes / 1024 ** 2)} MB`
