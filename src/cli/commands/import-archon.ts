import { dirname, resolve } from 'node:path'
import { type Call, command, cwdOf, isSet, listOf } from '../../commands/command.ts'
import { usage } from '../../commands/grammar/usage.ts'
import { importArchon } from '../../conversations/import-archon/import.ts'
import { parsePathMap, type PathMap } from '../../conversations/import-archon/path-map.ts'
import type { ImportedEnvironment, ImportReport } from '../../conversations/import-archon/report.ts'
import { AppError } from '../../domain/errors.ts'
import { passwordsIn } from '../../process/redaction/secret-names.ts'
import { type ArchonTarget, readArchon } from '../../store/archon/archon.ts'
import type { CliCall } from '../cli-call.ts'
import { importText, overLimitText } from './import-archon-text.ts'

const variable = 'ARCHON_DATABASE_URL'

const run = async (call: CliCall): Promise<ImportReport> => {
  const map = listOf(call.values, 'map').map(mapOf)
  const { context, environments, platforms } = await call.open()
  const target = await targetOf(call, context.ownEnvironment?.[variable])
  if ('postgresUrl' in target) context.secrets.add(...passwordsIn(target.postgresUrl))
  context.progress("reading Archon's database")
  const archon = await readArchon(target, context.home)
  const dryRun = isSet(call.values, 'dry-run')
  const parts = {
    context,
    environments: await environments(),
    platforms: await platforms(),
    onPlan: ({ overLimit }: ImportReport) => {
      if (!dryRun) for (const over of overLimit) call.live?.(`${overLimitText(over, true)}\n`)
    },
  }
  const report = await importArchon(parts, archon, {
    dryRun,
    own: isSet(call.values, 'own'),
    map,
    ...('sqliteFile' in target && { databaseDirectory: dirname(target.sqliteFile) }),
    signal: call.signal,
  })
  if (call.words[0] !== undefined && hasPassword(call.words[0])) {
    call.notice(
      `don't put passwords on the command line, where other users can read them: use ${variable} or - instead`,
    )
  }
  return report
}

const mapOf = (text: string): PathMap[number] => {
  const pair = parsePathMap(text)
  if (pair !== undefined) return pair
  throw usage(`invalid --map ${JSON.stringify(text.slice(0, 200))}`, 'usage: --map /.archon=/path/on/this/machine')
}

/** A file or a URL; one with a password only from where others can't read it. */
const targetOf = async (call: Call, given: string | undefined): Promise<ArchonTarget> => {
  const word = call.words[0]
  const text = word === '-' ? await firstLine(process.stdin) : (word ?? given ?? '')
  if (text.trim() === '') {
    const where = word === '-' ? 'standard input is empty' : `no argument was given, and ${variable} is not set`
    throw new AppError('usage', `no database given: ${where}`, {
      remedy: "pass the path of Archon's SQLite file, or its PostgreSQL URL",
    })
  }
  if (/^postgres(?:ql)?:\/\//i.test(text)) return { postgresUrl: text.trim() }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    // Don't echo it: it may contain a password.
    throw new AppError('usage', 'not a file or a postgres:// URL')
  }
  return { sqliteFile: resolve(cwdOf(call), text) }
}

const hasPassword = (text: string): boolean => /^[a-z]+:\/\/[^:/]*:.+@|[?&]password=/i.test(text)

const firstLine = async (input: NodeJS.ReadableStream): Promise<string> => {
  let text = ''
  for await (const chunk of input) {
    text += chunk.toString()
    if (text.includes('\n') || text.length > 10_000) break
  }
  return text.split('\n')[0]?.trim() ?? ''
}

const toJson = (report: ImportReport) => ({
  dryRun: report.dryRun,
  codebases: report.counts.codebase,
  environments: report.counts.environment,
  conversations: report.counts.conversation,
  sessions: report.counts.session,
  taken: {
    codebases: report.codebases,
    settings: report.settings,
    environments: report.environments.map(environmentJson),
    handedOver: report.handedOver.map(environmentJson),
  },
  overLimit: report.overLimit,
  toDo: report.advice,
  leftOut: report.leftOut,
})

const environmentJson = ({ lastActivityAt, ...environment }: ImportedEnvironment) => ({
  ...environment,
  lastActivityAt: new Date(lastActivityAt).toISOString(),
})

export const importArchonCommand = command<ImportReport, CliCall>({ run, toText: importText, toJson })
