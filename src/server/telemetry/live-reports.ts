/**
 * Reports every few seconds the sockets, queues and channels of this node, for the live view over all
 * nodes. An empty node reports nothing.
 */
import { DateTime, Effect, HashMap, Layer, Schedule, Schema } from "effect"
import { EnvironmentId } from "#rpc/ids"
import { projects as limits } from "#rpc/limits"
import { type LiveReport, LiveRepository } from "#sql/projects/live"
import { LocalChannels } from "#entities/channel/entity"
import { ThisNode } from "#entities/local-actors"
import { LocalQueues } from "#entities/matchmaking-queue/entity"
import { sweepDaily } from "#server/platform/database"
import { Gateway } from "#server/gateway/gateway"

type Document = LiveReport["document"]

/** A report under construction. */
interface Draft {
  connections: number
  readonly queues: Array<Document["queues"][number]>
  readonly channels: Array<Document["channels"][number]>
}

const isEnvironmentId = Schema.is(EnvironmentId)

/** Drafts by environment, created on first use. */
class Drafts {
  readonly #byId = new Map<string, Draft>()

  of(environmentId: string): Draft {
    const known = this.#byId.get(environmentId)
    if (known !== undefined) return known
    const draft: Draft = { connections: 0, queues: [], channels: [] }
    this.#byId.set(environmentId, draft)
    return draft
  }

  get reports(): ReadonlyArray<LiveReport> {
    return Array.from(this.#byId).flatMap(([environmentId, { channels, connections, queues }]) => {
      if (!isEnvironmentId(environmentId)) return []
      const truncated = channels.length > limits.liveMax
      const document = { queues, channels: channels.slice(0, limits.liveMax), truncated }
      return [{ environmentId, connections, document }]
    })
  }
}

/** Collects the reports of this node, one for each environment. */
const makeCollect = Effect.gen(function* () {
  const { sockets } = yield* Gateway
  const { actors: channels } = yield* LocalChannels
  const { actors: queues } = yield* LocalQueues
  return () => {
    const drafts = new Drafts()
    for (const { admission } of sockets) {
      if (admission !== undefined) drafts.of(admission.environmentId).connections += 1
    }
    for (const [id, actor] of queues) {
      const [environmentId = "", mode = ""] = id.split("/")
      if (actor.waiting > 0) drafts.of(environmentId).queues.push({ mode, waiting: actor.waiting })
    }
    for (const { state } of channels.values()) {
      if (state === undefined) continue
      const { environmentId, name } = state.options
      const members = HashMap.size(state.members)
      drafts.of(environmentId).channels.push({ name, members, voice: state.inCall })
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
      Effect.repeat(Schedule.spaced(limits.liveReportMillis)),
      Effect.forkScoped
    )
    yield* sweepDaily("Live reports", (now) =>
      repository.sweep(DateTime.subtract(now, { hours: 1 }))
    )
  })
)
