import { logWriterScript } from '../../process/log-writer.ts'
import { MARK_SCRIPT, markArguments, type RunMark } from '../../process/run-mark.ts'

/** Records its process ID, then becomes the program. */
export const STARTER = 'printf "%s\\n" "$$" >"$0/started.new" && mv "$0/started.new" "$0/started" && exec "$@"'

/** Without a terminal: input comes from one FIFO, and output goes through another to the log writer. */
const BACKGROUND = `if [ -n "$log" ]; then
  rm -f "$dir/input" "$dir/output" && (umask 077; mkfifo "$dir/input" "$dir/output") || exit 126
  /bin/sh -c "$writer" coppice-log "$log" "$longest" <"$dir/output" >/dev/null 2>&1 &
  exec 0<>"$dir/input" >"$dir/output" 2>&1 && rm -f "$dir/output" || exit 126
fi
`

/**
 * Answers requests from commands in the agent's sandbox. Reads one file name per line. A shell and a FIFO, because a
 * waiting Node process per agent would cost 60 MB. If the answer fails, an empty one is written so that the command
 * stops waiting.
 */
const REQUESTS = `if [ -n "$requests" ]; then
  (umask 077; mkdir -p "$dir/requests" "$dir/answers" && rm -f "$dir/requests/bell" && mkfifo "$dir/requests/bell") || exit 126
  while IFS= read -r id; do
    case $id in '' | *[!0-9a-f-]*) continue ;; esac
    (coppice internal answer "$id" </dev/null || [ -e "$dir/answers/$id" ] || echo '{}' >"$dir/answers/$id") &
  done <>"$dir/requests/bell" >/dev/null 2>&1 &
  answering=$!
fi
`

/**
 * The shell around an agent's program. It records the program's exit code on disk, whatever happens to tmux or to
 * Coppice, and ignores signals that are meant for the program. Arguments: the cgroup and the limit of the mark; the
 * agent's directory; the worktree; whether to answer requests (or empty); the log (empty with a terminal), its maximum
 * size and its writer; the program and its arguments.
 *
 * The shell changes to the worktree itself: if that is gone, tmux would start it in the home directory.
 *
 * `$TMUX` is unset, so that an agent that uses tmux gets the user's server, not the one with all agents.
 */
const SCRIPT = `${MARK_SCRIPT}dir=$1 tree=$2 requests=$3 log=$4 longest=$5 writer=$6 answering=; shift 6
unset TMUX TMUX_PANE
cd "$tree" || exit 126
if [ -f "$dir/environment" ]; then . "$dir/environment" && rm -f "$dir/environment" || exit 126; fi
${BACKGROUND}${REQUESTS}trap : HUP INT QUIT TERM
sh -c '${STARTER}' "$dir" "$@"
code=$?
[ -z "$answering" ] || kill "$answering"
printf "%s\\n" "$code" >"$dir/ended.new" && { sync "$dir/ended.new" 2>/dev/null || sync; } && mv "$dir/ended.new" "$dir/ended"
exit "$code"
`

/** Without a command, `environment` has it. */
export const wrapped = (
  command: readonly [string, ...string[]] | readonly [],
  {
    mark,
    directory,
    worktree,
    answersRequests = false,
    log,
  }: {
    readonly mark: RunMark
    readonly directory: string
    readonly worktree: string
    readonly answersRequests?: boolean | undefined
    /** Without a terminal: where its output goes. */
    readonly log?: { readonly file: string; readonly longestBytes: number }
  },
): readonly [string, ...string[]] => [
  '/bin/sh',
  '-c',
  SCRIPT,
  'coppice-session',
  ...markArguments(mark),
  directory,
  worktree,
  answersRequests ? 'yes' : '',
  log?.file ?? '',
  String(log?.longestBytes ?? 0),
  logWriterScript,
  ...command,
]

/**
 * Content of the file `environment`, which the shell reads so that no value appears on a command line. It also has the
 * program's command, because tmux accepts no command line longer than 16 kB.
 */
export const environmentScript = (
  variables: Readonly<Record<string, string>>,
  command: readonly [string, ...string[]],
): string => {
  const exports = Object.entries(variables)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    .map(([name, value]) => `export ${name}=${quoted(value)}\n`)
  return `${exports.join('')}set -- ${command.map(quoted).join(' ')}\n`
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`
