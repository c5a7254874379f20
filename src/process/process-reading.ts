/** What is known about a pid now. `startTime` and `zombie` come from the same read, so they are consistent. */
export type ProcessReading =
  | { readonly kind: 'there'; readonly startTime: string; readonly zombie: boolean }
  | { readonly kind: 'gone' }
  | { readonly kind: 'cannot-tell' }
