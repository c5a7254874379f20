/** Time and ids are passed in, so tests can control them. */
export type Clock = () => number
export type Ids = () => string
