import { createRoute, z } from '@hono/zod-openapi'
import { type CleanupReport, joinReports } from '../../cleanup/report.ts'
import { runScheduledCleanup } from '../../cleanup/sweep.ts'
import { reportJson } from '../../commands/views/json.ts'
import { asProgram } from '../../commands/views/view.ts'
import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { failures, json, missing } from '../routes.ts'
import { codebaseName, reportAnswer } from '../schemas.ts'

const route = createRoute({
  method: 'post',
  path: '/api/cleanup',
  summary: 'Remove merged and stale environments that are safe to remove (default: of all codebases)',
  request: {
    body: {
      required: false,
      content: {
        'application/json': {
          schema: z.strictObject({ dryRun: z.boolean().optional(), codebase: codebaseName.optional() }),
        },
      },
    },
  },
  responses: { 200: json('What was removed, and why the rest was kept', reportAnswer), ...failures, ...missing },
})

export const addCleanup = (app: App, deps: ServerDeps): void => {
  const { isolation } = deps.context
  app.openapi(route, async (c) => {
    const { dryRun = false, codebase: name } = c.req.valid('json')
    const codebases =
      name === undefined
        ? await isolation.store.codebases.list(isolation.host)
        : [await resolveCodebase(isolation, { name, cwd: '/' })]
    const { reports, failed } = await cleanAll(deps, codebases, dryRun)
    deps.wake()
    const names = new Map(codebases.map(({ id, name }) => [String(id), name]))
    return c.json({ ...reportJson(joinReports(reports, dryRun), (id) => names.get(id) ?? '', asProgram), failed }, 200)
  })
}

type Failed = { readonly codebase: string; readonly error: string }

/** One unreadable repository must not stop the others from being cleaned. */
const cleanAll = async (
  { context, redact }: ServerDeps,
  codebases: readonly Codebase[],
  dryRun: boolean,
): Promise<{ reports: CleanupReport[]; failed: Failed[] }> => {
  const reports: CleanupReport[] = []
  const failed: Failed[] = []
  for (const codebase of codebases) {
    try {
      const report = await runScheduledCleanup(context.isolation, await context.environments(), codebase, { dryRun })
      reports.push(report)
      if (dryRun) continue
      const { removed, skipped } = report
      context.changes.emit({
        type: 'cleanup',
        codebaseId: codebase.id,
        removed: removed.length,
        skipped: skipped.length,
      })
    } catch (error) {
      context.isolation.log.error('a codebase could not be cleaned', { codebase: codebase.name, error })
      failed.push({ codebase: codebase.name, error: redact(toAppError(error).message) })
    }
  }
  return { reports, failed }
}
