/** Shell: waits until the process is `sleep`. Right after `&`, and before an `exec`, it is still called `sh`. */
export const untilSleeps = (pid: string): string =>
  `until ps -o comm= -p ${pid} | grep -q 'sleep$'; do sleep 0.01; done`
