/** Changes of a room since its last write, and the replies that wait until those are written. */
import type { PlayerCommand, RoomOutput } from "./messages.ts"
import type { RoomSettings } from "./model.ts"

const stateCommands: ReadonlySet<PlayerCommand["t"]> = new Set(["lock", "setMyState", "setState"])

/** Whether the room acknowledges the command only when it has stored the change. */
export const isDurable = (
  settings: Pick<RoomSettings, "durable"> | undefined,
  t: PlayerCommand["t"]
): boolean => settings?.durable === true && stateCommands.has(t)

interface DeferredReply {
  readonly node: string
  readonly reply: RoomOutput
  /** Number of changes that must be written before the reply is sent. */
  readonly changes: number
}

/** Readings of several clocks at one moment. */
type Moment = ReadonlyArray<number>

export class PendingWrites {
  readonly #clocks: ReadonlyArray<() => number>
  #changes = 0
  /** Time of the oldest unwritten change. */
  #since: Moment | undefined
  /** Time of the oldest change that no write in progress covers. */
  #notStartedSince: Moment | undefined
  #deferred: Array<DeferredReply> = []

  /**
   * Makes the record with clocks in milliseconds. The one that advanced most counts: the time of
   * day may be set back, and a monotonic clock may stand still while the machine sleeps.
   */
  constructor(clocks: ReadonlyArray<() => number>) {
    this.#clocks = clocks
  }

  /** Counts a change of the state. */
  changed(): void {
    this.#changes += 1
    this.#notStartedSince ??= this.#clocks.map((now) => now())
    this.#since ??= this.#notStartedSince
  }

  /** Age of the oldest unwritten change, milliseconds. */
  get delayMillis(): number {
    const since = this.#since
    if (since === undefined) return 0
    return Math.max(0, ...this.#clocks.map((now, i) => now() - (since[i] ?? 0)))
  }

  /** Holds a reply back until all changes so far are written. */
  defer(node: string, reply: RoomOutput): void {
    this.#deferred.push({ node, reply, changes: this.#changes })
  }

  get hasReplies(): boolean {
    return this.#deferred.length > 0
  }

  /**
   * Starts a write. Returns the number of changes that it covers, the argument of `commitWrite`.
   */
  beginWrite(): number {
    this.#notStartedSince = undefined
    return this.#changes
  }

  /** Completes a write, and returns the replies that waited for it. */
  commitWrite(changes: number): ReadonlyArray<DeferredReply> {
    this.#since = this.#notStartedSince
    const due = this.#deferred.filter((deferred) => deferred.changes <= changes)
    if (due.length > 0) {
      this.#deferred = this.#deferred.filter((deferred) => deferred.changes > changes)
    }
    return due
  }
}
