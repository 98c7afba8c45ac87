/**
 * Check of a matchmaking queue: it opens no room while the seats of rooms that are being opened would do.
 * It counts seats itself, from the matches that the queue makes and completes.
 */
import type { Match } from "#entities/matchmaking-queue/state"
import { matchmaking } from "#entities/matchmaking-queue/state"

interface Pending {
  /** Seats that the match does not take. */
  readonly free: number
  readonly until: number
}

export class OpeningCheck {
  readonly #pending = new Map<Match, Pending>()

  /**
   * Records that a match is made. Returns the number of seats that nobody waits for, in rooms that are being
   * opened; a match that opens another should find none.
   */
  begin(match: Match, maxPlayers: number, waiting: number, now: number): number {
    if (match.kind === "fill") return 0
    let free = -waiting
    for (const pending of this.#pending.values()) if (now < pending.until) free += pending.free
    this.#pending.set(match, {
      free: maxPlayers - match.tickets.length,
      until: now + matchmaking.openingMillis
    })
    return Math.max(0, free)
  }

  /** Records that a match is completed, successfully or not. */
  end(match: Match): void {
    this.#pending.delete(match)
  }
}
