/**
 * Shell code that appends its input to a log, and moves the log to `<log>.1` when it is too long: of a life, up to twice
 * as much is kept. It is a process of its own, so that logs neither need us nor grow while nobody looks. Checked once in
 * 512 reads, so a log may be 8 MB longer.
 *
 * If it can't write, as on a full disk, it goes on reading: whoever writes to it must not be stopped by that.
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

/** Arguments of the script: the log, and how long it may become. */
export const logWriter = (log: string, longestBytes: number): readonly [string, ...string[]] => [
  '/bin/sh',
  '-c',
  logWriterScript,
  'coppice-log',
  log,
  String(longestBytes),
]
