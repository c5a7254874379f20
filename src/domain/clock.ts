/** Time and ids come in as arguments, so that rules can be tried at any hour. */
export type Clock = () => number
export type Ids = () => string
