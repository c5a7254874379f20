/**
 * Shell code that appends its input to a log, and moves the log to `<log>.1` when it is too long, so up to twice that
 * much is kept. A process of its own, so that logs are written and rotated without a server. The size is checked once
 * per 512 reads, so a log may be 8 MB longer.
 *
 * If writing fails, as on a full disk, it keeps reading so that the agent isn't blocked.
 */
export const logWriterScript = `umask 077
log=$1 longest=$2
trap '' HUP INT QUIT TERM
while :; do
  size=$(wc -c <"$log") || size=0
  if [ "$size" -ge "$longest" ]; then mv -f -- "$log" "$log.1" || exec cat >/dev/null; fi
  records=$(dd bs=16384 count=512 2>&1 >>"$log") || exec cat >/dev/null
  case "$records" in 0+0*) exit ;; esac
done 2>/dev/null`

/** The command that runs the script. Its arguments: the log and its maximum size. */
export const logWriter = (log: string, longestBytes: number): readonly [string, ...string[]] => [
  '/bin/sh',
  '-c',
  logWriterScript,
  'coppice-log',
  log,
  String(longestBytes),
]
