/** The note of an agent's last death. */
export const DEATH = 'death'

export type Death = {
  readonly name: string
  /** Agents that die because of something else, such as the end of their tmux server, don't count one by one. */
  readonly cause: 'own' | 'tmux-ended' | 'restart'
}
