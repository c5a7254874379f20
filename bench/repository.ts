import type { Sandbox } from '../test/helpers/repo.ts'
import { fastImport, plainGit } from './plain-git.ts'

/**
 * Generates a realistic repository: eight files per directory, up to five levels deep, long-tailed sizes (median 2 kB,
 * mean about 4 kB, a few of 60 kB), 30 commits, one pack by `git gc`, checked out. Always the same: the random numbers
 * have a fixed seed.
 */
export const generateRepository = (box: Pick<Sandbox, 'env' | 'root'>, path: string, files: number): void => {
  plainGit(box, box.root, 'init', '-q', path)
  fastImport(box, path, importStream(files))
  plainGit(box, path, 'gc', '-q')
  plainGit(box, path, 'reset', '-q', '--hard', 'main')
}

const commits = 30

const importStream = (files: number): Buffer => {
  const random = seeded(files)
  const text = wordsBy(random)
  const names = Array.from({ length: files }, (_, i) => pathOf(i))
  const first = names.flatMap((name) => change(name, text(sizeBy(random))))
  const parts: (string | Buffer)[] = [commit(0), ...first]
  for (let i = 1; i < commits; i += 1) {
    const touched = Array.from({ length: 5 }, () => names[Math.floor(random() * files)] ?? 'file')
    parts.push(commit(i), ...touched.flatMap((name) => change(name, text(sizeBy(random)))))
  }
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
}

const commit = (i: number): string => {
  const message = `change ${i}`
  const who = `Ada <ada@example.org> ${1_700_000_000 + i * 3600} +0000`
  return `commit refs/heads/main\nmark :${i + 1}\nauthor ${who}\ncommitter ${who}\ndata ${message.length}\n${message}\n${i === 0 ? '' : `from :${i}\n`}`
}

const change = (name: string, content: Buffer): (string | Buffer)[] => [
  `M 100644 inline ${name}\ndata ${content.length}\n`,
  content,
  '\n',
]

const perDirectory = 8
const areas = ['src', 'packages', 'test', 'docs', 'lib']

const pathOf = (i: number): string => {
  let directory = Math.floor(i / perDirectory)
  const area = areas[directory % areas.length] ?? 'src'
  directory = Math.floor(directory / areas.length)
  const levels: string[] = []
  while (directory > 0 && levels.length < 4) {
    levels.push(`part-${directory % 12}`)
    directory = Math.floor(directory / 12)
  }
  return [area, ...levels, `file-${i}.ts`].join('/')
}

/** Log-normal, like real file sizes. */
const sizeBy = (random: () => number): number => {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.max(20, Math.min(60_000, Math.round(2_000 * Math.exp(1.2 * normal))))
}

/** Slices of one long text of words, which compresses like source code, each with a unique first line. */
const wordsBy = (random: () => number): ((size: number) => Buffer) => {
  const letters = 'etaoinshrdlucmfwypvbgk'
  const letter = (): string => letters[Math.floor(random() ** 1.5 * letters.length)] ?? 'e'
  const words = Array.from({ length: 4_000 }, () =>
    Array.from({ length: 2 + Math.floor(random() * 9) }, letter).join(''),
  )
  const word = (): string => `${words[Math.floor(random() ** 2 * words.length)] ?? ''}${random() < 0.1 ? '\n' : ' '}`
  const text = Buffer.from(Array.from({ length: 300_000 }, word).join(''))
  return (size) => {
    const from = Math.floor(random() * (text.length - size))
    return Buffer.concat([Buffer.from(`// ${random()}\n`), text.subarray(from, from + size)])
  }
}

/** mulberry32 */
const seeded = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
