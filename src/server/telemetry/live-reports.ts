/**
 * Reports every few seconds the sockets, queues, channels and calls of this node, for the live view over
 * all nodes. An empty node reports nothing.
 */
import { DateTime, Effect, HashMap, Layer, Schedule, Schema } from "effect"
import { EnvironmentId } from "#rpc/ids"
import { projects as limits } from "#rpc/limits"
import { type LiveCall, type LiveReport, LiveRepository } from "#sql/live/reports"
import { LocalChannels } from "#entities/channel/entity"
import { ThisNode } from "#entities/local-actors"
import { LocalQueues } from "#entities/matchmaking-queue/entity"
import type { VoiceCall } from "#entities/voice-session/call"
import { VoiceCalls } from "#entities/voice-session/calls"
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
        channels: channels.slice(0, limits.liveMax),
        calls: calls.slice(0, limits.liveCallsMax),
        truncated: channels.length > limits.liveMax || calls.length > limits.liveCallsMax
      }
      return [{ environmentId, connections, document }]
    })
  }
}

const callReport = ({ state: { channel, endsAt, members, voice } }: VoiceCall): LiveCall => ({
  channel,
  ...voice,
  endsAt,
  members: Array.from(members.values(), ({ absentUntil, canSpeak, id, publishing }) => ({
    playerId: id,
    speaks: canSpeak && publishing,
    away: absentUntil !== null
  }))
})

/** Collects the reports of this node, one for each environment. */
const makeCollect = Effect.gen(function* () {
  const { sockets } = yield* Gateway
  const { actors: channels } = yield* LocalChannels
  const { actors: queues } = yield* LocalQueues
  const calls = yield* VoiceCalls
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
    for (const call of calls.all()) {
      const environmentId = call.channel.state?.options.environmentId
      if (environmentId === undefined || call.state.members.size === 0) continue
      drafts.of(environmentId).calls.push(callReport(call))
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
