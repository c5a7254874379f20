import { resolve } from 'node:path'
import { type Call, command, isSet, cwdOf } from '../../commands/command.ts'
import { aligned, printable, tilde, type View } from '../../commands/views/view.ts'
import { importArchon } from '../../conversations/import-archon/import.ts'
import type { ImportKind, ImportReport } from '../../conversations/import-archon/report.ts'
import { AppError } from '../../domain/errors.ts'
import { counted } from '../../domain/text/words.ts'
import { passwordsIn } from '../../process/redaction/secret-names.ts'
import { type ArchonTarget, readArchon } from '../../store/archon/archon.ts'

const variable = 'ARCHON_DATABASE_URL'

const run = async (call: Call): Promise<ImportReport> => {
  const { context, environments } = await call.open()
  const target = await targetOf(call, context.ownEnvironment?.[variable])
  if ('postgresUrl' in target) context.secrets.add(...passwordsIn(target.postgresUrl))
  context.progress("reading Archon's database")
  const archon = await readArchon(target, context.home)
  const report = await importArchon(context, await environments(), archon, {
    dryRun: isSet(call.values, 'dry-run'),
    signal: call.signal,
  })
  if (call.words[0] !== undefined && hasPassword(call.words[0])) {
    call.notice(
      `don't put passwords on the command line, where other users can read them: use ${variable} or - instead`,
    )
  }
  return report
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

const toText = (report: ImportReport, view: View): string => {
  const { counts, dryRun, environments, leftOut } = report
  const sum = (key: 'taken' | 'known'): string => {
    const parts = kinds.flatMap((kind) => (counts[kind][key] > 0 ? [counted(counts[kind][key], kind)] : []))
    return parts.length < 2 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
  }
  const rows = environments.map(({ codebase, work, branch, path }) => [
    { text: `  ${printable(branch)}`, style: 'bold' as const },
    { text: `${work.type} ${printable(work.id)}` },
    { text: codebase },
    { text: printable(tilde(path, view)), style: 'dim' as const },
  ])
  const taken = sum('taken')
  const known = sum('known')
  const head = dryRun ? 'Would import' : 'Imported'
  return [
    taken === '' ? 'Nothing new to import' : `${view.paint('green', head)} ${taken}`,
    ...(rows.length === 0 ? [] : [aligned(rows, view)]),
    ...(known === '' ? [] : [`Already imported: ${known}`]),
    ...(leftOut.length === 0 ? [] : [view.paint('yellow', `Skipped ${leftOut.length}:`)]),
    ...leftOut.map(({ kind, name, reason }) => `  ${kind} ${printable(name)}: ${printable(reason)}`),
    ...(environments.length === 0 || dryRun
      ? []
      : ['Coppice never deletes these worktrees: removing one only stops tracking it.']),
  ].join('\n')
}

const kinds: readonly ImportKind[] = ['codebase', 'environment', 'conversation', 'session']

const toJson = ({ dryRun, counts, codebases, environments, leftOut }: ImportReport) => ({
  dryRun,
  codebases: counts.codebase,
  environments: counts.environment,
  conversations: counts.conversation,
  sessions: counts.session,
  taken: { codebases, environments },
  leftOut,
})

export const importArchonCommand = command<ImportReport>({ run, toText, toJson })
