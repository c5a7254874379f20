/** What can be known about a pid at this moment. `startTime` and `zombie` are from one reading, so they belong together. */
export type ProcessReading =
  | { readonly kind: 'there'; readonly startTime: string; readonly zombie: boolean }
  | { readonly kind: 'gone' }
  | { readonly kind: 'cannot-tell' }
