import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The agents' programs that the tests run. A newer one is tried by changing it here. */
export const agentVersions = { '@anthropic-ai/claude-code': '2.1.325', '@openai/codex': '0.166.0' } as const

export type InstalledAgents = { readonly claude: string; readonly codex: string; readonly directory: string }

/**
 * Installs the real programs (about 400 MB each) once per pair of versions, outside of the package's own dependencies.
 * Throws when that cannot be done: a test that did not run must not look like one that passed.
 */
export const installAgents = (env: Readonly<Record<string, string | undefined>>): InstalledAgents => {
  const cache = join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'coppice-test-agents')
  const packages = Object.entries(agentVersions).map(([name, version]) => `${name}@${version}`)
  const directory = join(cache, Object.values(agentVersions).join('+'))
  const bin = join(directory, 'node_modules', '.bin')
  const installed = { claude: join(bin, 'claude'), codex: join(bin, 'codex'), directory }
  if (isThere(installed)) return installed
  // Under a name of its own, then renamed: a second one who installs at the same time, or a stop half-way, does no harm.
  const building = join(cache, `installing-${process.pid}`)
  rmSync(building, { recursive: true, force: true })
  mkdirSync(building, { recursive: true })
  // Claude Code's own package links the program for this system in its install script.
  const allowScripts = { '@anthropic-ai/claude-code': true }
  writeFileSync(join(building, 'package.json'), JSON.stringify({ private: true, allowScripts }))
  try {
    execFileSync('npm', ['install', '--prefix', building, '--no-audit', '--no-fund', ...packages], {
      cwd: building,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
    })
    // What is there now is either whole, made by somebody else meanwhile, or a ruin.
    if (!isThere(installed)) rmSync(directory, { recursive: true, force: true })
    renameSync(building, directory)
  } catch (error) {
    if (!isThere(installed)) throw notInstalled(packages, error)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  if (!isThere(installed)) throw notInstalled(packages, 'the programs are not where they should be')
  return installed
}

const isThere = ({ claude, codex }: InstalledAgents): boolean => [claude, codex].every((path) => existsSync(path))

const notInstalled = (packages: readonly string[], cause: unknown): Error =>
  new Error(`the agents' programs could not be installed (${packages.join(', ')}), so nothing was shown about them`, {
    cause,
  })

if (import.meta.main) console.log(installAgents(process.env).directory)
