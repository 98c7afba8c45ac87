/** What became of the snapshots of one node's entities, for metrics. */
export class SnapshotStats {
  /** These only grow. */
  written = 0
  failures = 0
  /** Snapshots refused, since a newer activation has written. */
  fenced = 0
  /** Since when nothing could be written, Unix milliseconds. */
  failingSince: number | undefined

  wrote(snapshots: number): void {
    this.written += snapshots
    this.failingSince = undefined
  }

  failed(now: number): void {
    this.failures += 1
    this.failingSince ??= now
  }
}
