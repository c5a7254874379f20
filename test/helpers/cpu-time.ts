/** Milliseconds of processor time: unlike those on the clock, a busy machine does not make them more. */
export const cpuTimeOf = (work: () => unknown): number => {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
