import { execFile } from 'node:child_process'
import { AppError } from '../../domain/errors.ts'
import type { HowInside, Scan, ScanOptions } from './scan.ts'

/** macOS: `lsof` lists open files of the processes we may see (all as root) and omits the others. */
export async function* scanDarwin(options: ScanOptions): AsyncIterable<Scan> {
  const text = await lsof()
  for (const { pid, command, links } of parseLsof(text)) {
    if (!options.skip(pid)) yield { pid, command: () => command, links }
  }
}

export type LsofProcess = {
  readonly pid: number
  readonly command: string
  readonly links: readonly (readonly [HowInside, string])[]
}

/** `-F pcfn`: one field per line, tagged by its first letter; p starts a process, f a file. */
export const parseLsof = (text: string): readonly LsofProcess[] => {
  const processes: { pid: number; command: string; links: (readonly [HowInside, string])[] }[] = []
  let how: HowInside = 'file'
  for (const line of text.split('\n')) {
    const value = line.slice(1)
    const current = processes.at(-1)
    if (line.startsWith('p')) processes.push({ pid: Number(value), command: '', links: [] })
    else if (current === undefined) continue
    else if (line.startsWith('c')) current.command = value
    else if (line.startsWith('f')) how = HOW[value] ?? 'file'
    else if (line.startsWith('n')) current.links.push([how, value])
  }
  return processes
}

const HOW: Readonly<Record<string, HowInside>> = { cwd: 'cwd', rtd: 'root', txt: 'exe' }

const lsof = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { env: { LC_ALL: 'C', PATH: '/usr/sbin:/usr/bin:/bin' }, maxBuffer: 256 * 1024 * 1024 }
    execFile('lsof', ['-n', '-P', '-w', '-F', 'pcfn'], options, (error, stdout) => {
      // lsof exits with 1 if anything was unreadable; only empty output means it failed
      if (stdout === '') {
        reject(new AppError('unexpected', "lsof couldn't list open files", { cause: error }))
      } else resolve(stdout)
    })
  })
