/**
 * Reports every few seconds the sockets, queues, channels and calls of this node, for the live view over
 * all nodes. An empty node reports nothing.
 */
import { DateTime, Effect, Layer, Schedule, Schema } from "effect"
import { EnvironmentId } from "#rpc/ids"
import { liveLimits } from "#rpc/live"
import { type LiveCall, type LiveReport, LiveRepository } from "#sql/live/reports"
import { ThisNode } from "#entities/local-actors"
import { entitiesOnNode } from "#entities/registry"
import { sweepDaily } from "#server/platform/database"
import { Gateway } from "#server/gateway/gateway"

type Document = LiveReport["document"]

/** A report under construction. */
interface Draft {
  connections: number
  readonly queues: Array<Document["queues"][number]>
  readonly channels: Array<Document["channels"][number]>
  readonly calls: Array<LiveCall>
}

const isEnvironmentId = Schema.is(EnvironmentId)

/** Drafts by environment, created on first use. */
class Drafts {
  readonly #byId = new Map<string, Draft>()

  of(environmentId: string): Draft {
    const known = this.#byId.get(environmentId)
    if (known !== undefined) return known
    const draft: Draft = { connections: 0, queues: [], channels: [], calls: [] }
    this.#byId.set(environmentId, draft)
    return draft
  }

  get reports(): ReadonlyArray<LiveReport> {
    return Array.from(this.#byId).flatMap(([environmentId, draft]) => {
      if (!isEnvironmentId(environmentId)) return []
      const { calls, channels, connections, queues } = draft
      const document = {
        queues,
        channels: channels.slice(0, liveLimits.listedMax),
        calls: calls.slice(0, liveLimits.callsMax),
        truncated: channels.length > liveLimits.listedMax || calls.length > liveLimits.callsMax
      }
      return [{ environmentId, connections, document }]
    })
  }
}

/** Collects the reports of this node, one for each environment. */
const makeCollect = Effect.gen(function* () {
  const { sockets } = yield* Gateway
  const entities = yield* entitiesOnNode
  return () => {
    const drafts = new Drafts()
    for (const { admission } of sockets) {
      if (admission !== undefined) drafts.of(admission.environmentId).connections += 1
    }
    for (const { live } of entities) {
      for (const { entry, environmentId } of live()) {
        const { calls, channels, queues } = drafts.of(environmentId)
        if (entry.queues !== undefined) queues.push(entry.queues)
        if (entry.channels !== undefined) channels.push(entry.channels)
        if (entry.calls !== undefined) calls.push(entry.calls)
      }
    }
    return drafts.reports
  }
})

export const LiveReports = Layer.effectDiscard(
  Effect.gen(function* () {
    const repository = yield* LiveRepository
    const { id: node } = yield* ThisNode
    const collect = yield* makeCollect
    let wasEmpty = true
    const report = Effect.gen(function* () {
      const reports = collect()
      if (wasEmpty && reports.length === 0) return
      yield* repository.write({ node, reports, now: yield* DateTime.now })
      wasEmpty = reports.length === 0
    })
    yield* report.pipe(
      Effect.tapDefect((defect) => Effect.logDebug("Failed to write the live report", defect)),
      Effect.exit,
      Effect.repeat(Schedule.spaced(liveLimits.reportMillis)),
      Effect.forkScoped
    )
    yield* sweepDaily("Live reports", (now) =>
      repository.sweep(DateTime.subtract(now, { hours: 1 }))
    )
  })
)
