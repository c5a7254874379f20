/** A broken promise, in one sentence. */
export const expected: (condition: boolean, otherwise: string) => asserts condition = (condition, otherwise) => {
  if (!condition) throw new Error(otherwise)
}
