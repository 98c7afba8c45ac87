/**
 * Says every few seconds what is alive on this node, for the live view of all nodes together: sockets,
 * and the queues and channels that live here. A node with nothing alive says nothing.
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

/** A report in the making. */
interface Draft {
  connections: number
  readonly queues: Array<Document["queues"][number]>
  readonly channels: Array<Document["channels"][number]>
}

const isEnvironmentId = Schema.is(EnvironmentId)

/** Drafts by environment, made when there is something to say. */
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

/** What is alive here, by environment. */
const makeLook = Effect.gen(function* () {
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
    const rows = yield* LiveRepository
    const { id: node } = yield* ThisNode
    const look = yield* makeLook
    let silent = true
    const report = Effect.gen(function* () {
      const reports = look()
      if (silent && reports.length === 0) return
      yield* rows.write({ node, reports, now: yield* DateTime.now })
      silent = reports.length === 0
    })
    yield* report.pipe(
      Effect.tapDefect((defect) => Effect.logDebug("What is alive was not reported", defect)),
      Effect.exit,
      Effect.repeat(Schedule.spaced(limits.liveReportMillis)),
      Effect.forkScoped
    )
    yield* sweepDaily("Live reports", (now) => rows.sweep(DateTime.subtract(now, { hours: 1 })))
  })
)
