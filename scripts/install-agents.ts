import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Agent versions used by the tests. To try a newer one, change it here. */
export const agentVersions = { '@anthropic-ai/claude-code': '2.1.325', '@openai/codex': '0.166.0' } as const

export type InstalledAgents = { readonly claude: string; readonly codex: string; readonly directory: string }

/** Both agents, about 400 MB each. */
export const installAgents = (env: Environment): InstalledAgents =>
  installPackages(env, agentVersions, ['claude', 'codex'])

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Installs real programs once per set of versions, outside the package's dependencies. Throws on failure: a test that
 * didn't run must not look like one that passed.
 */
export const installPackages = <Name extends string>(
  env: Environment,
  versions: Readonly<Record<string, string>>,
  names: readonly Name[],
): Readonly<Record<Name | 'directory', string>> => {
  const cache = join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'coppice-test-agents')
  const packages = Object.entries(versions).map(([name, version]) => `${name}@${version}`)
  const directory = join(cache, Object.values(versions).join('+'))
  const paths = names.map((name) => [name, join(directory, 'node_modules', '.bin', name)] as const)
  const isInstalled = (): boolean => paths.every(([, path]) => existsSync(path))
  const installed = Object.fromEntries([...paths, ['directory', directory]]) as Record<Name | 'directory', string>
  if (isInstalled()) return installed
  // In a separate directory, then renamed: safe against concurrent installs and interruptions.
  const building = join(cache, `installing-${process.pid}`)
  rmSync(building, { recursive: true, force: true })
  mkdirSync(building, { recursive: true })
  // Claude Code's install script links the program for this system.
  const allowScripts = { '@anthropic-ai/claude-code': true }
  writeFileSync(join(building, 'package.json'), JSON.stringify({ private: true, allowScripts }))
  try {
    execFileSync('npm', ['install', '--prefix', building, '--no-audit', '--no-fund', ...packages], {
      cwd: building,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
    })
    // Whatever is there now is either complete, by a concurrent install, or broken.
    if (!isInstalled()) rmSync(directory, { recursive: true, force: true })
    renameSync(building, directory)
  } catch (error) {
    if (!isInstalled()) throw notInstalled(packages, error)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  if (!isInstalled()) throw notInstalled(packages, 'the installed programs are missing')
  return installed
}

const notInstalled = (packages: readonly string[], cause: unknown): Error =>
  new Error(`couldn't install the agents' programs (${packages.join(', ')}), so their tests can't run`, {
    cause,
  })

if (import.meta.main) console.log(installAgents(process.env).directory)
