/**
 * Holds the graces of an environment while its players wait for admission: on this node, or on another one
 * that reports it. Before any node serves, nobody can return, so all graces are held.
 */
import { Clock, Context, DateTime, Effect, Layer, Schedule } from "effect"
import { liveLimits } from "#rpc/live"
import { type NodeReport, NodeRepository } from "#sql/live/nodes"
import { graces } from "#entities/reconnect-grace"
import { GraceHolds } from "#entities/grace-holds"
import { ThisNode } from "#entities/local-actors"
import { localGroups } from "#entities/registry"
import { forEachInSlices } from "#server/platform/slices"
import { type WaitingConnections, WaitingPlayers } from "./waiting-players.ts"

/** What other nodes report: whether one serves, and the environments whose players wait there. */
export interface Elsewhere {
  readonly isServed: boolean
  readonly waiting: ReadonlyArray<string>
}

/** Returns what the nodes other than this one report. */
export const elsewhereOf = (node: string, reports: ReadonlyArray<NodeReport>): Elsewhere => {
  const others = reports.filter((report) => report.node !== node && !report.document.draining)
  return {
    isServed: others.length > 0,
    waiting: others.flatMap(({ document }) => document.waiting ?? [])
  }
}

interface Hold {
  readonly from: number
  readonly seenAt: number
}

/** The holds of a node. Each lasts a little longer than the wait, so that it does not flicker. */
export class Holds {
  readonly #waiting: WaitingConnections
  readonly #holds = new Map<string, Hold>()
  readonly #startedAt: number
  #isServed = false

  constructor(waiting: WaitingConnections, now: number) {
    this.#waiting = waiting
    this.#startedAt = now
  }

  /** Since when the graces of the environment are held; null while they run. */
  heldFrom(environmentId: string): number | null {
    if (!this.#isServed && !this.#waiting.isServing) return this.#startedAt
    return this.#holds.get(environmentId)?.from ?? this.#waiting.longest(environmentId)
  }

  /** Looks at the waits again; returns the environments whose graces are held now or run again, or all. */
  look(now: number, elsewhere: Elsewhere): ReadonlySet<string> | "all" {
    const wasServed = this.#isServed
    this.#isServed = elsewhere.isServed || this.#waiting.isServing
    const changed = new Set<string>()
    for (const id of [...this.#waiting.environments, ...elsewhere.waiting]) {
      const known = this.#holds.get(id)
      if (known === undefined) changed.add(id)
      const from = known?.from ?? this.#waiting.longest(id) ?? now
      this.#holds.set(id, { from, seenAt: now })
    }
    for (const [id, { seenAt }] of this.#holds) {
      if (now - seenAt < graces.holdMillis) continue
      this.#holds.delete(id)
      changed.add(id)
    }
    return wasServed === this.#isServed ? changed : "all"
  }
}

const nobody: Elsewhere = { isServed: false, waiting: [] }

/** Reads what other nodes report; without a response, what they have reported before is out of date. */
const makeElsewhere = Effect.gen(function* () {
  const repository = yield* NodeRepository
  const { id: node } = yield* ThisNode
  return Effect.gen(function* () {
    const now = yield* DateTime.now
    const since = DateTime.subtract(now, { milliseconds: liveLimits.trustMillis })
    return elsewhereOf(node, yield* repository.read(since))
  }).pipe(
    Effect.tapDefect((defect) => Effect.logDebug("Failed to read the reports of nodes", defect)),
    Effect.catchDefect(() => Effect.succeed(nobody))
  )
})

/** Applies changed holds to the rooms and channels that live here. */
const makeApply = Effect.map(
  localGroups,
  (groups) => (changed: ReadonlySet<string> | "all") =>
    Effect.forEach(
      groups,
      ({ actors }) =>
        forEachInSlices(actors.values(), (actor) => {
          const { environmentId } = actor
          if (environmentId === undefined) return
          if (changed === "all" || changed.has(environmentId)) actor.tick()
        }),
      { discard: true }
    )
)

const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const now = (): number => clock.currentTimeMillisUnsafe()
  const holds = new Holds(yield* WaitingPlayers, now())
  const read = yield* makeElsewhere
  const apply = yield* makeApply
  let elsewhere = yield* read
  const look = Effect.suspend(() => {
    const changed = holds.look(now(), elsewhere)
    return changed === "all" || changed.size > 0 ? apply(changed) : Effect.void
  })
  yield* look
  yield* Effect.map(read, (reported) => {
    elsewhere = reported
  }).pipe(Effect.repeat(Schedule.spaced(graces.readMillis)), Effect.forkScoped)
  yield* look.pipe(Effect.repeat(Schedule.spaced(graces.lookMillis)), Effect.forkScoped)
  return { heldFrom: (environmentId: string) => holds.heldFrom(environmentId) }
})

export const GraceHoldsLive = Layer.effectContext(
  Effect.map(make, (holds) => Context.make(GraceHolds, holds))
)
