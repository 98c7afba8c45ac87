/**
 * Joins under way at the media processes of this runner. Each one makes a connection, and its handshake
 * takes time of a process that all environments share, so that each environment has a share of them. A
 * join keeps its place a second at least: who joins and leaves in turn is bounded, too.
 */
import { voice as limits } from "#rpc/limits"
import type { MediaCall } from "#entities/voice-session/media"
import { FairShares } from "#server/platform/fair-semaphore"
import type { WorkerCall } from "./media-worker.ts"

interface Join {
  readonly call: WorkerCall
  readonly environmentId: string
  /** Monotonic milliseconds. */
  readonly startedAt: number
  /** The member is connected, or has gone. */
  isSettled: boolean
}

export class JoinsUnderWay {
  readonly #shares = new FairShares<never>({ ...limits.joinsUnderWay, waitingPerKey: 0 })
  /** By session, which is unique on this runner. */
  readonly #joins = new Map<string, Join>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** A call whose joins are bounded. */
  bound(call: WorkerCall, environmentId: string): MediaCall {
    return {
      ...call,
      reserve: (session) => {
        if (!this.#shares.take(environmentId)) return false
        const startedAt = this.#now()
        this.#joins.set(session, { call, environmentId, startedAt, isSettled: false })
        return true
      },
      close: (session) => {
        this.settle(session)
        call.close(session)
      },
      end: () => {
        for (const join of this.#joins.values()) if (join.call === call) join.isSettled = true
        call.end()
      }
    }
  }

  /** The member is connected, or has gone. */
  settle(session: string): void {
    const join = this.#joins.get(session)
    if (join !== undefined) join.isSettled = true
  }

  /** Frees the places of joins that are settled. */
  releaseSettled(): void {
    const until = this.#now() - limits.joinMillis
    for (const [session, { environmentId, isSettled, startedAt }] of Array.from(this.#joins)) {
      if (!isSettled || startedAt > until) continue
      this.#joins.delete(session)
      this.#shares.release(environmentId)
    }
  }
}
