import { median, type Row } from './measure.ts'
import type { Result } from './results.ts'
import type { Bench } from './stage.ts'

export type Measured = { readonly bench: Bench; readonly result: Result | undefined }

/** The table, as it stands in docs/performance.md and on the terminal. */
export const table = (rows: readonly Row[]): string =>
  [
    '| figure | ours, ms | against, ms | result | to reach | |',
    '|---|---|---|---|---|---|',
    ...rows.map(({ figure, unit, ours, raw, result, toReach, reached }) => {
      const cells = [
        figure,
        spread(ours, unit),
        raw === undefined ? '–' : spread(raw, unit),
        result,
        toReach ?? '–',
        verdict(reached),
      ]
      return `| ${cells.join(' | ')} |`
    }),
  ].join('\n')

/** The whole of docs/performance.md. */
export const report = (measured: readonly Measured[]): string => {
  const rows = measured.flatMap(({ result }) => result?.rows ?? [])
  const never = measured.filter(({ result }) => result === undefined).map(({ bench }) => bench.title)
  const missed = rows.filter(({ reached }) => reached === false)
  return `${[
    '# Performance',
    'Written by `npm run bench`; do not edit by hand.',
    'What matters to users isn’t how many milliseconds a machine takes, but whether Coppice is faster than doing the same by hand. So every figure is a ratio to something in the same run: to plain git on the same repository, or to the same program without the measured part. If there is nothing to compare with, it is a count.',
    missed.length === 0
      ? 'Every figure that was set is reached.'
      : `Not reached: ${missed.map(({ figure, result, toReach }) => `${figure} (${result}; to reach: ${toReach})`).join('; ')}.`,
    ...(never.length === 0 ? [] : [`Not measured yet: ${never.join('; ')}.`]),
    table(rows),
    'Times are medians, with the smallest and largest sample in brackets. Ratios are of the medians.',
    '## How it is measured',
    'Repositories of 3,000 and 30,000 files are generated for the run: directories up to five levels deep, file sizes with a long tail (median 2 kB), 30 commits, packed by `git gc`, checked out, without a remote. The two sides take turns, and the order alternates. The first round of each figure is discarded; data is synced to disk before each measurement that writes files, off the clock. Plain git runs with a configuration that contains only an identity. Ours runs with SQLite.',
    ...measured.map(({ bench, result }) =>
      [`### ${capital(bench.title)}`, bench.inside, ...(result === undefined ? [] : [measuredOn(result)])].join('\n\n'),
    ),
    '## Run it',
    '```sh\nnpm run build              # for the figures of the built program\nnpm run bench              # all figures\nnpm run bench -- create remove   # only benchmarks whose names contain one of these words; the others are unchanged\n```',
    `The names are ${measured.map(({ bench }) => `\`${bench.name}\``).join(', ')}. It needs about 6 GB in the temporary directory (\`TMPDIR\`) and an otherwise idle machine.`,
  ].join('\n\n')}\n`
}

const measuredOn = ({ machine }: Result): string => `Measured on: ${machine.join('; ')}.`

const spread = (samples: readonly number[], unit: string | undefined): string => {
  const [first] = samples
  if (first === undefined) return '–'
  const range = samples.length === 1 ? '' : ` (${ms(Math.min(...samples))}–${ms(Math.max(...samples))})`
  return `${ms(median(samples))}${range}${unit === undefined ? '' : ` ${unit}`}`
}

const ms = (value: number): string => {
  if (value < 10) return value.toFixed(2)
  return value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en-US')
}

const verdict = (reached: boolean | undefined): string => {
  if (reached === undefined) return 'for information'
  return reached ? 'reached' : '**not reached**'
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
