/**
 * Joins in progress at the media processes of this runner. Each one opens a connection. Its handshake
 * takes time of a process that all environments share, so each environment has a share of the joins. A
 * join keeps its place for at least a second, which also bounds clients that join and leave repeatedly.
 */
import type { MediaCall } from "#entities/voice-session/media"
import { FairShares } from "#server/platform/fair-semaphore"
import { mediaLimits } from "./media-limits.ts"
import type { WorkerCall } from "./media-worker.ts"

interface Join {
  readonly call: WorkerCall
  readonly environmentId: string
  /** Start time in monotonic milliseconds. */
  readonly startedAt: number
  /** Whether the member has connected or left. */
  isCompleted: boolean
}

export class JoinsUnderWay {
  readonly #shares = new FairShares<never>({ ...mediaLimits.joinsUnderWay, waitingPerKey: 0 })
  /** Joins by session, which is unique on this runner. */
  readonly #joins = new Map<string, Join>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Wraps a call with a bound on its joins. */
  bound(call: WorkerCall, environmentId: string): MediaCall {
    return {
      ...call,
      reserve: (session) => {
        if (!this.#shares.take(environmentId)) return false
        const startedAt = this.#now()
        this.#joins.set(session, { call, environmentId, startedAt, isCompleted: false })
        return true
      },
      close: (session) => {
        this.complete(session)
        call.close(session)
      },
      end: () => {
        for (const join of this.#joins.values()) if (join.call === call) join.isCompleted = true
        call.end()
      }
    }
  }

  /** Marks the join of a member that has connected or left as completed. */
  complete(session: string): void {
    const join = this.#joins.get(session)
    if (join !== undefined) join.isCompleted = true
  }

  /** Frees the places of completed joins. */
  releaseCompleted(): void {
    const until = this.#now() - mediaLimits.joinMillis
    for (const [session, { environmentId, isCompleted, startedAt }] of Array.from(this.#joins)) {
      if (!isCompleted || startedAt > until) continue
      this.#joins.delete(session)
      this.#shares.release(environmentId)
    }
  }
}
