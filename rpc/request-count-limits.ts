/** Bounds of the counts of requests that the overview shows. */
export const requestCounts = {
  /** Interval at which a node adds its counts to the table. */
  flushMillis: 5000,
  /** Environments in one statement. */
  perStatement: 1000,
  /**
   * Counts, by environment and minute, that a node holds while the database does not answer. Beyond
   * it, the node does not count requests of further environments and minutes.
   */
  waitingMax: 20_000,
  /**
   * Minutes and hours that the overview shows, this one included. The service deletes older counts.
   */
  minutes: 60,
  hours: 24
} as const
