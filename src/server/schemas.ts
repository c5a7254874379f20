import { z } from '@hono/zod-openapi'
import { AppError } from '../domain/errors.ts'
import { toWork, workTypes } from '../domain/work.ts'

/*
 * Schemas for all external input: every string is limited, nothing that the database or a terminal can't handle is
 * accepted, unknown keys are refused.
 */

// eslint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** An id or a name: a single non-empty line. */
export const line = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => !control.test(text), 'must not contain control characters')
    .refine((text) => text.isWellFormed(), 'must not contain an unpaired surrogate')
    .refine((text) => text.trim() !== '', 'must not be blank')

const messageBytes = 100_000

/** User text: any number of lines, limited in bytes. PostgreSQL can't store NUL. */
export const userText = z
  .string()
  .min(1)
  .max(messageBytes)
  .refine((text) => Buffer.byteLength(text) <= messageBytes, `must be at most ${messageBytes} bytes`)
  .refine((text) => !text.includes('\0'), 'must not contain NUL')
  .refine((text) => text.isWellFormed(), 'must not contain an unpaired surrogate')
  .refine((text) => text.trim() !== '', 'must not be blank')

export const conversationId = line(500).openapi({ description: "The conversation's id, chosen by the caller" })

const number = z.int().min(1).max(9_999_999_999)
const sha = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, 'must be a full commit id')

/** See `IsolationHints`. */
export const hints = z
  .strictObject({
    workflowType: z.enum(workTypes).optional(),
    workflowId: z.union([line(500), number.transform(String)]).optional(),
    prBranch: line(200).optional(),
    prSha: sha.optional(),
    isForkPR: z.boolean().optional(),
    linkedIssues: z.array(number).max(100).optional(),
    linkedPRs: z.array(number).max(100).optional(),
    suggestedBranch: line(200).optional(),
  })
  .superRefine(({ workflowType, workflowId }, context) => {
    if (workflowType === undefined || workflowId === undefined) return
    try {
      toWork(workflowType, workflowId)
    } catch (error) {
      const message = error instanceof AppError ? error.message : 'must be a valid work identity'
      context.addIssue({ code: 'custom', path: ['workflowId'], message })
    }
  })
  .openapi('IsolationHints')

/** A name, never a path: a read-only request must not register a repository. */
export const codebaseName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'must be a valid codebase name')
  .openapi({ description: "A registered codebase's name" })

export const incoming = {
  message: userText,
  codebase: codebaseName.optional().openapi({ description: 'Binds a conversation that has no codebase yet' }),
  move: z.boolean().optional().openapi({ description: 'If true, moves the conversation to `codebase`' }),
  hints: hints.optional(),
  deliveryId: line(200).optional().openapi({ description: 'Idempotency key: a message with a known ID is ignored' }),
}

/** `?force=true`; any other spelling is an error, not false. */
export const flag = z
  .enum(['true', 'false'])
  .optional()
  .transform((value) => value === 'true')

export const platformName = z.string().regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be a valid platform name')
export const ownPlatform = z.enum(['web', 'cli']).default('web')

export const time = z.string().openapi({ format: 'date-time' })

export const acceptedAnswer = z
  .object({ conversationId: z.string(), id: z.string(), outcome: z.enum(['accepted', 'duplicate']) })
  .openapi('Accepted')

export const codebaseAnswer = z
  .object({
    id: z.string(),
    name: z.string(),
    path: z.string(),
    repository: z.string(),
    remote: z.string().nullable(),
    url: z.string().nullable(),
    github: z.string().nullable(),
    cloned: z.boolean(),
    createdAt: time,
  })
  .openapi('Codebase')

const environmentShape = {
  id: z.string(),
  codebase: z.string(),
  work: z.object({ type: z.enum(workTypes), id: z.string() }),
  provider: z.string(),
  path: z.string(),
  branch: z.string(),
  status: z.string(),
  owned: z.boolean(),
  createdBy: z.string(),
  createdAt: time,
}

export const environmentAnswer = z.object(environmentShape).openapi('Environment')

const reason = z.object({ gate: z.string(), answer: z.string(), detail: z.string() })

/** The git facts are present only when a codebase was named. */
export const listedAnswer = z
  .object({
    ...environmentShape,
    current: z.boolean().optional(),
    dirty: z.boolean().nullable().optional(),
    ahead: z.number().nullable().optional(),
    behind: z.number().nullable().optional(),
    merged: z
      .object({ value: z.boolean().nullable(), proof: z.string().nullable(), pullRequest: z.number().optional() })
      .optional(),
    lastActivityAt: time.optional(),
    conversations: z.array(z.string()).optional(),
    inUse: z.boolean().optional(),
    cleanup: z
      .object({ why: z.enum(['merged', 'stale']), heldBy: z.array(reason) })
      .nullable()
      .optional(),
  })
  .openapi('ListedEnvironment')

export const errorBody = z
  .object({
    error: z.object({
      code: z.string(),
      message: z.string(),
      reasons: z.array(reason),
      remedies: z.array(z.string()),
    }),
  })
  .openapi('Error')

export const reportAnswer = z
  .object({
    removed: z.array(
      environmentAnswer.extend({ leftOut: z.array(z.object({ path: z.string(), reason: z.string() })) }),
    ),
    skipped: z.array(z.object({ environment: environmentAnswer, reasons: z.array(reason) })),
    missing: z.array(environmentAnswer),
    orphans: z.array(z.object({ path: z.string(), branch: z.string().nullable() })),
    errors: z.array(z.object({ environment: environmentAnswer, error: z.string() })),
    failed: z.array(z.object({ codebase: z.string(), error: z.string() })),
    dryRun: z.boolean(),
    notices: z.array(z.string()),
  })
  .openapi('CleanupReport')
