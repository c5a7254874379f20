/**
 * A pid alone names whoever has it now. With the start time it names one process for ever.
 * `startTime` is opaque: clock ticks since boot plus boot id on Linux, the start date elsewhere.
 */
export type ProcessIdentity = { readonly pid: number; readonly startTime: string }
