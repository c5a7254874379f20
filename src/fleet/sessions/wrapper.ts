import { MARK_SCRIPT, markArguments, type RunMark } from '../../process/run-mark.ts'

/** Leaves its process ID, and becomes the program. */
export const STARTER = 'printf "%s\\n" "$$" >"$0/started.new" && mv "$0/started.new" "$0/started" && exec "$@"'

/**
 * The shell around an agent's program. It stays, so that the program's end is on disk whatever becomes of tmux or of us,
 * and outlives signals that are meant for the program. Arguments: the cgroup and the limit of the mark, `fifo` or
 * `terminal`, the agent's directory, the program with its arguments.
 *
 * `$TMUX` is hidden: an agent that uses tmux gets the user's own server, not the one with all agents.
 */
const SCRIPT = `${MARK_SCRIPT}input=$1 dir=$2; shift 2
unset TMUX TMUX_PANE
if [ -f "$dir/environment" ]; then . "$dir/environment" && rm -f "$dir/environment" || exit 126; fi
if [ "$input" = fifo ]; then
  rm -f "$dir/input" && (umask 077; mkfifo "$dir/input") && exec 0<>"$dir/input" || exit 126
fi
trap : HUP INT QUIT TERM
sh -c '${STARTER}' "$dir" "$@"
code=$?
printf "%s\\n" "$code" >"$dir/ended.new" && { sync "$dir/ended.new" 2>/dev/null || sync; } && mv "$dir/ended.new" "$dir/ended"
exit "$code"
`

export const wrapped = (
  command: readonly [string, ...string[]],
  {
    mark,
    input,
    directory,
  }: { readonly mark: RunMark; readonly input: 'fifo' | 'terminal'; readonly directory: string },
): readonly [string, ...string[]] => [
  '/bin/sh',
  '-c',
  SCRIPT,
  'coppice-session',
  ...markArguments(mark),
  input,
  directory,
  ...command,
]

/** For `environment`: read by the shell, so that no value is ever on a command line. */
export const environmentScript = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'\n`)
    .join('')
