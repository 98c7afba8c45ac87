/**
 * Connections of this node that wait for their admission, with a valid token of a player, by environment.
 * At most as many as there are sockets.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { graces } from "#entities/reconnect-grace"

/** A connection that waits, and since when, Unix milliseconds. */
interface Wait {
  readonly since: number
}

export class WaitingConnections {
  readonly #now: () => number
  /** By environment; the first of each waits longest. */
  readonly #waits = new Map<string, Set<Wait>>()
  /** By environment, the last connection that had waited too long when this node accepted it. */
  readonly #late = new Map<string, Wait & { readonly at: number }>()
  #isServing = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether this node accepts connections. */
  get isServing(): boolean {
    return this.#isServing
  }

  serve(): void {
    this.#isServing = true
  }

  /** Records that a connection waits; the result ends the wait. */
  begin(environmentId: string, since: number): () => void {
    const wait = { since }
    const at = this.#now()
    if (at - since > graces.admissionMillis) this.#late.set(environmentId, { since, at })
    const waits = this.#waits.get(environmentId) ?? new Set()
    this.#waits.set(environmentId, waits.add(wait))
    return () => {
      waits.delete(wait)
      if (waits.size === 0 && this.#waits.get(environmentId) === waits) {
        this.#waits.delete(environmentId)
      }
    }
  }

  /** Since when the environment's connections wait, if one waits too long; else null. */
  longest(environmentId: string): number | null {
    const now = this.#now()
    const [first] = this.#waits.get(environmentId) ?? []
    if (first !== undefined && now - first.since > graces.admissionMillis) return first.since
    const late = this.#late.get(environmentId)
    return late !== undefined && now - late.at < graces.holdMillis ? late.since : null
  }

  /** The environments with a connection that waits too long, the longest wait first. */
  get environments(): ReadonlyArray<string> {
    const now = this.#now()
    for (const [id, { at }] of this.#late) {
      if (now - at >= graces.holdMillis) this.#late.delete(id)
    }
    return Array.from(new Set([...this.#waits.keys(), ...this.#late.keys()]))
      .flatMap((environmentId) => {
        const since = this.longest(environmentId)
        return since === null ? [] : [{ environmentId, since }]
      })
      .toSorted((a, b) => a.since - b.since)
      .slice(0, graces.reportedEnvironmentsMax)
      .map(({ environmentId }) => environmentId)
  }
}

export class WaitingPlayers extends Context.Service<WaitingPlayers, WaitingConnections>()(
  "server/cluster/waiting-players/WaitingPlayers"
) {
  static readonly layer = Layer.effect(
    WaitingPlayers,
    Effect.map(
      Clock.Clock,
      (clock) => new WaitingConnections(() => clock.currentTimeMillisUnsafe())
    )
  )
}

/** Counts a connection as waiting while its admission runs. */
export const waitingSince =
  (environmentId: string, since: number) =>
  <A, E, R>(admission: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | WaitingPlayers> =>
    Effect.flatMap(WaitingPlayers, (waiting) =>
      Effect.suspend(() =>
        Effect.ensuring(admission, Effect.sync(waiting.begin(environmentId, since)))
      )
    )
