/** What a live channel stands on: its process, the clock, the database. */

export interface ChannelRuntime {
  readonly now: () => number
  /** Is the channel surely still this process's? */
  readonly hasLease: () => boolean
  /** Call `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Call `flush` after the flush window. */
  readonly flushSoon: () => void
  /** What is stored of the channel has changed. */
  readonly changed: () => void
  /** The channel is over. */
  readonly closed: () => void
}
