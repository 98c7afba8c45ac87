/** Registers the metrics of sockets, frames, entities, snapshots and the database. */
import { Clock, Effect, HashMap, Layer, Metric } from "effect"
import { closeCodes } from "#rpc/realtime"
import { statementSeconds, statementsUnderWay } from "#sql/database"
import { LocalChannels } from "#entities/channel/entity"
import { ChannelWriter } from "#entities/channel/writer"
import { LocalQueues, matchesMade } from "#entities/matchmaking-queue/entity"
import { LocalSessions } from "#entities/player-session/entity"
import { LocalRooms } from "#entities/room/entity"
import { RoomWriter } from "#entities/room/writer"
import { readings } from "#server/platform/metrics"
import { Settings } from "#server/platform/settings/settings"
import { rateLimitedTotal } from "#server/platform/throttles"
import { matchWaitSeconds } from "#server/features/matchmaking/frames"
import { webhookSeconds } from "#server/features/stats/verification"
import { HttpServerHandle } from "#server/http/server"
import { Gateway } from "#server/gateway/gateway"
import { ProcessReadings } from "./process.ts"

const sum = <A>(items: Iterable<A>, of: (item: A) => number): number => {
  let total = 0
  for (const item of items) total += of(item)
  return total
}

/** `slow_consumer` for `slowConsumer`. */
const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const readSockets = Effect.gen(function* () {
  const { counter, gauge } = yield* readings
  const { socketStats, sockets } = yield* Gateway
  const withKind = (kind: string) => () =>
    sum(sockets, ({ admission }) => {
      if (admission === undefined) return kind === "waiting" ? 1 : 0
      return (admission.player === undefined ? "anonymous" : "player") === kind ? 1 : 0
    })
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
  const { gauge } = yield* readings
  const rooms = (yield* LocalRooms).actors
  const channels = (yield* LocalChannels).actors
  const queues = (yield* LocalQueues).actors
  const sessions = (yield* LocalSessions).actors
  gauge("svc_rooms", "Rooms on this node.", () =>
    sum(rooms.values(), ({ state }) => (state?.closed === null ? 1 : 0))
  )
  gauge("svc_room_members", "Players in the rooms of this node.", () =>
    sum(rooms.values(), ({ state }) => state?.members.size ?? 0)
  )
  gauge("svc_channels", "Channels on this node.", () =>
    sum(channels.values(), ({ state }) => (state === undefined ? 0 : 1))
  )
  gauge("svc_channel_members", "Players in the channels of this node.", () =>
    sum(channels.values(), ({ state }) => (state === undefined ? 0 : HashMap.size(state.members)))
  )
  gauge("svc_queues", "Matchmaking queues on this node.", () => queues.size)
  gauge("svc_queue_tickets", "Tickets waiting in the queues of this node.", () =>
    sum(queues.values(), ({ waiting }) => waiting)
  )
  gauge("svc_player_sessions", "Sessions of players on this node.", () =>
    sum(sessions.values(), ({ size }) => size)
  )
})

const readSnapshots = Effect.gen(function* () {
  const { counter, gauge } = yield* readings
  const clock = yield* Clock.Clock
  const writers = { room: yield* RoomWriter, channel: yield* ChannelWriter }
  for (const [entity, { counts, waiting }] of Object.entries(writers)) {
    const of = { entity }
    counter("svc_snapshots_written_total", "Snapshots written.", () => counts.written, of)
    counter(
      "svc_snapshot_failures_total",
      "Failed snapshot writes; their snapshots are retried.",
      () => counts.failures,
      of
    )
    counter(
      "svc_snapshots_fenced_total",
      "Snapshots refused because a newer activation has written; the older one is fenced.",
      () => counts.fenced,
      of
    )
    gauge("svc_snapshots_waiting", "Entities whose newest state is not written yet.", waiting, of)
    const failing = () => {
      const now = clock.currentTimeMillisUnsafe()
      return (now - (counts.failingSince ?? now)) / 1000
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
    yield* readSnapshots
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
