/** Registers the metrics of sockets, frames, entities, snapshots and the database. */
import { Clock, Effect, Layer, Metric } from "effect"
import { closeCodes } from "#rpc/realtime"
import { statementSeconds, statementsUnderWay } from "#sql/database"
import { matchesMade } from "#entities/matchmaking-queue/entity"
import { entitiesOnNode } from "#entities/registry"
import { readings } from "#server/platform/metrics"
import { Settings } from "#server/platform/settings/settings"
import { rateLimitedTotal } from "#server/platform/throttles"
import { matchWaitSeconds } from "#server/features/matchmaking/frames"
import { webhookSeconds } from "#server/features/stats/verification"
import { HttpServerHandle } from "#server/http/server"
import type { ClientSocket } from "#server/gateway/client-socket"
import { Gateway } from "#server/gateway/gateway"
import { ProcessReadings } from "./process.ts"

/** `slow_consumer` for `slowConsumer`. */
const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const readSockets = Effect.gen(function* () {
  const { counter, gauge } = yield* readings
  const { socketStats, sockets } = yield* Gateway
  const kindOf = ({ admission }: ClientSocket) => {
    if (admission === undefined) return "waiting"
    return admission.player === undefined ? "anonymous" : "player"
  }
  const withKind = (kind: string) => () => {
    let open = 0
    for (const socket of sockets) if (kindOf(socket) === kind) open += 1
    return open
  }
  const open = "Open sockets: of players, anonymous, and waiting for their first frame."
  for (const kind of ["player", "anonymous", "waiting"]) {
    gauge("svc_sockets", open, withKind(kind), { kind })
  }
  counter("svc_sockets_accepted_total", "Sockets that were opened.", () => socketStats.accepted)
  counter(
    "svc_sockets_refused_total",
    "Upgrades refused with 503 because the node was full or stopping.",
    () => socketStats.refused
  )
  counter(
    "svc_sockets_admitted_total",
    "Sockets whose first frame was accepted.",
    () => socketStats.admitted
  )
  const closed = "Closed sockets, by reason; client: closed by the client."
  for (const [name, code] of Object.entries(closeCodes)) {
    const read = () => socketStats.closed.get(code) ?? 0
    counter("svc_sockets_closed_total", closed, read, { reason: snakeCase(name) })
  }
  const byClient = () => socketStats.closed.get(undefined) ?? 0
  counter("svc_sockets_closed_total", closed, byClient, { reason: "client" })
})

const readFrames = Effect.gen(function* () {
  const { counter, gauge } = yield* readings
  const { frameStats, outboxBudget, writeStats } = (yield* Gateway).host
  gauge(
    "svc_socket_unsent_bytes",
    "Bytes that wait for the clients of sockets to read.",
    () => outboxBudget.bytes
  )
  counter("svc_frames_received_total", "Frames received from sockets.", () => frameStats.frames)
  counter("svc_frames_invalid_total", "Invalid frames.", () => frameStats.invalid)
  counter("svc_frames_limited_total", "Frames that were rate limited.", () => frameStats.limited)
  counter(
    "svc_messages_sent_total",
    "Messages handed to sockets (fan-out).",
    () => writeStats.messages
  )
  counter("svc_sent_bytes_total", "Bytes written to sockets.", () => writeStats.bytes)
  counter(
    "svc_socket_writes_total",
    "Writes to sockets; one for each flush.",
    () => writeStats.writes
  )
})

const readEntities = Effect.gen(function* () {
  const { counter, gauge } = yield* readings
  const clock = yield* Clock.Clock
  for (const { counts, word, writer } of yield* entitiesOnNode) {
    for (const { metric, of } of counts) if (metric !== undefined) gauge(...metric, of)
    if (writer === undefined) continue
    const stats = writer.counts
    const of = { entity: word }
    counter("svc_snapshots_written_total", "Snapshots written.", () => stats.written, of)
    counter(
      "svc_snapshot_failures_total",
      "Failed snapshot writes; their snapshots are retried.",
      () => stats.failures,
      of
    )
    counter(
      "svc_snapshots_fenced_total",
      "Snapshots refused because a newer activation has written; the older one is fenced.",
      () => stats.fenced,
      of
    )
    const waiting = "Entities whose newest state is not written yet."
    gauge("svc_snapshots_waiting", waiting, writer.waiting, of)
    const failing = () => {
      const now = clock.currentTimeMillisUnsafe()
      return (now - (stats.failingSince ?? now)) / 1000
    }
    gauge(
      "svc_snapshots_failing_seconds",
      "Time since snapshot writes began to fail; 0 while they succeed.",
      failing,
      of
    )
  }
})

/** Registers metrics that have no value yet, so that a scrape shows them at zero. */
const registerZeros = Effect.all(
  [
    Metric.value(statementSeconds),
    Metric.value(statementsUnderWay),
    Metric.value(matchWaitSeconds),
    Metric.value(matchesMade),
    Metric.value(webhookSeconds("answered")),
    Metric.value(webhookSeconds("failed")),
    Metric.value(rateLimitedTotal)
  ],
  { discard: true }
)

/** All metrics of `GET /metrics` except those of requests and of the cluster. */
export const ReadingsLive = Layer.effectDiscard(
  Effect.gen(function* () {
    const { databaseConnections } = yield* Settings
    const { connections, dropped, refused } = yield* HttpServerHandle
    const { counter, gauge } = yield* readings
    yield* registerZeros
    yield* readSockets
    yield* readFrames
    yield* readEntities
    gauge("svc_connections", "Open TCP connections, including upgraded ones.", connections)
    counter(
      "svc_connections_dropped_total",
      "TCP connections closed at once because the limit was reached.",
      dropped
    )
    counter(
      "svc_connections_refused_total",
      "Connections, and requests of proxies, refused because their client address has too many.",
      refused
    )
    gauge(
      "svc_database_connections_max",
      "Size of the connection pool; further statements wait.",
      () => databaseConnections
    )
  })
).pipe(Layer.merge(ProcessReadings))
