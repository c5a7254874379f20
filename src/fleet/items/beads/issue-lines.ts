/*
 * Parses beads' exchange format: one JSON object per line (`bd export`, `.beads/issues.jsonl`). In: untrusted bytes.
 * Out: issues, or an error that names the lines. Also reads files from versions before 1.0.
 */
import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { AppError } from '../../../domain/errors.ts'
import type { BeadsDependency, BeadsIssue } from '../../../domain/fleet/import/beads-issue.ts'
import { isBodyTooLong, titleAndBody } from '../../../domain/fleet/import/wanted.ts'
import { defaultPriority, maxBodyLength, priorities } from '../../../domain/fleet/item.ts'
import type { Remedy } from '../../../domain/remedy.ts'
import { createTimeSlice } from '../../../process/time-slice.ts'

export type LinesFrom = {
  /** A file or a command, for messages. */
  readonly name: string
  readonly code: 'unusable-file' | 'program-failed'
  readonly remedy: Remedy
}

export type ReadIssues = {
  readonly issues: readonly BeadsIssue[]
  /** The number of lines that aren't issues, such as memories. */
  readonly others: number
}

const MOST_ISSUES = 100_000
/** A line contains the issue's comments too. */
const MOST_LINE_BYTES = 4_000_000
const MOST_PROBLEMS = 5

export const readIssueLines = async (bytes: Buffer, from: LinesFrom): Promise<ReadIssues> => {
  const slice = createTimeSlice()
  const byId = new Map<string, BeadsIssue>()
  const problems: string[] = []
  let others = 0
  for (const { number, line } of linesOf(bytes)) {
    if (slice.isOver()) await slice.next()
    const read = byId.size >= MOST_ISSUES ? tooMany : readLine(line, number)
    if (read.kind === 'other') others += 1
    if (read.kind === 'issue') {
      const twin = byId.get(read.issue.id)
      if (twin === undefined) byId.set(read.issue.id, read.issue)
      else problems.push(`line ${number}: ${read.issue.id} is in line ${twin.line}, too`)
    }
    if (read.kind === 'problem') problems.push(`line ${number}: ${read.why}`)
    if (problems.length === MOST_PROBLEMS || read === tooMany) break
  }
  if (problems.length > 0) {
    throw new AppError(from.code, `${from.name}, ${problems.join('; ')}`, { remedy: from.remedy })
  }
  return { issues: [...byId.values()], others }
}

function* linesOf(bytes: Buffer): Generator<{ readonly number: number; readonly line: Buffer }> {
  let number = 0
  for (let from = 0; from < bytes.length;) {
    const found = bytes.indexOf(LINE_FEED, from)
    const end = found === -1 ? bytes.length : found
    number += 1
    yield { number, line: bytes.subarray(from, end) }
    from = end + 1
  }
}

const LINE_FEED = 10

type Read =
  | { readonly kind: 'issue'; readonly issue: BeadsIssue }
  | { readonly kind: 'empty' | 'other' }
  | { readonly kind: 'problem'; readonly why: string }

const tooMany: Read = { kind: 'problem', why: `more than ${MOST_ISSUES} issues` }

const readLine = (bytes: Buffer, line: number): Read => {
  if (bytes.length > MOST_LINE_BYTES) {
    return { kind: 'problem', why: `too long: ${bytes.length} bytes (limit: ${MOST_LINE_BYTES})` }
  }
  if (!isUtf8(bytes)) return { kind: 'problem', why: 'not valid UTF-8' }
  const text = bytes.toString('utf8').replace(/^\ufeff/, '')
  if (text.trim() === '') return { kind: 'empty' }
  const value = parsed(text)
  if (value === undefined) {
    return { kind: 'problem', why: text.includes('\0') ? 'NUL bytes, so not a JSON object' : 'not a JSON object' }
  }
  if (value['_type'] !== undefined && value['_type'] !== 'issue') return { kind: 'other' }
  const checked = schema.safeParse(value)
  return checked.success ? toIssue(checked.data, line) : { kind: 'problem', why: whyInvalid(checked.error) }
}

const parsed = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}

/** Passed to `bd` as an argument, and shown to people: no invisible characters, and no leading dash. */
const id = z.string().regex(/^[\p{L}\p{N}][\p{L}\p{N}._:@/+-]{0,254}$/u, 'not an issue id')

const text = z.string().nullish()

const time = z
  .string()
  .nullish()
  .transform((given) => {
    const at = Date.parse(given ?? '')
    return Number.isNaN(at) ? undefined : at
  })

const flag = z.boolean().nullish()

/** Ignores unknown fields, which new versions may add. */
const schema = z.object({
  id,
  title: text,
  description: text,
  design: text,
  acceptance_criteria: text,
  notes: text,
  status: z
    .string()
    .regex(/^[a-z][\w-]{0,60}$/, 'not a status')
    .nullish(),
  priority: z.literal(priorities).nullish(),
  issue_type: z.string().max(60).nullish(),
  created_at: time,
  defer_until: time,
  deleted_at: text,
  ephemeral: flag,
  /** Its name before 0.38. */
  wisp: flag,
  is_template: flag,
  pinned: flag,
  dependencies: z
    .array(
      z.object({
        depends_on_id: id,
        type: z.string().max(60),
        metadata: z.unknown().optional(),
      }),
    )
    .nullish(),
})

const whyInvalid = ({ issues: [first] }: z.ZodError): string => {
  const where = first?.path.join('.') ?? ''
  return `${where === '' ? '' : `${where}: `}${first?.message ?? 'invalid'}`
}

const toIssue = (given: z.infer<typeof schema>, line: number): Read => {
  const deleted = typeof given.deleted_at === 'string' && given.deleted_at !== ''
  // A closed or deleted issue never becomes an item, so its texts don't matter.
  const isOver = deleted || given.status === 'closed' || given.status === 'tombstone'
  const written = isOver ? { title: given.id, body: '' } : titleAndBody(given.title ?? '', bodyOf(given))
  if (written === undefined) return { kind: 'problem', why: `${given.id} has no title` }
  if (isBodyTooLong(written.body)) {
    const why = `the text of ${given.id} has ${written.body.length} characters (limit: ${maxBodyLength})`
    return { kind: 'problem', why }
  }
  const issue: BeadsIssue = {
    line,
    id: given.id,
    ...written,
    status: given.status ?? 'open',
    priority: given.priority ?? defaultPriority,
    type: given.issue_type ?? 'task',
    deleted,
    aside: [given.ephemeral, given.wisp, given.is_template, given.pinned].includes(true),
    deferredUntil: given.defer_until,
    createdAt: given.created_at ?? 0,
    dependencies: (given.dependencies ?? []).map(({ depends_on_id: on, type, metadata }) => ({
      on,
      type,
      anyChild: isAnyChild(metadata),
    })),
  }
  return { kind: 'issue', issue }
}

const sections = [
  ['description', undefined],
  ['design', 'Design'],
  ['acceptance_criteria', 'Acceptance criteria'],
  ['notes', 'Notes'],
] as const

const bodyOf = (given: z.infer<typeof schema>): string =>
  sections
    .flatMap(([field, heading]) => {
      const written = given[field]?.trim() ?? ''
      if (written === '') return []
      return [heading === undefined ? written : `## ${heading}\n\n${written}`]
    })
    .join('\n\n')

/** `{"gate":"any-children"}`, as JSON in a string. */
const isAnyChild = (metadata: unknown): BeadsDependency['anyChild'] => {
  const value = typeof metadata === 'string' ? parsed(metadata) : metadata
  return gated.safeParse(value).success
}

const gated = z.object({ gate: z.literal('any-children') })
