/**
 * Reads of the live view: one room from its last snapshot, and voice calls and runners from the last
 * report of each node.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { NotFound, RoomNotFound, Unavailable } from "#rpc/errors/codes"
import { type EnvironmentId, RoomId } from "#rpc/ids"
import type { LiveCalls, LiveRoom, LiveRunners } from "#rpc/live"
import { liveLimits } from "#rpc/live"
import { type NodeReport, NodeRepository } from "#sql/live/nodes"
import { type LiveCall, LiveRepository } from "#sql/live/reports"
import { LiveRoomRepository } from "#sql/live/rooms"
import { decodeSnapshot } from "#entities/room/snapshot"
import { voiceCalls } from "#entities/voice-session/model"
import { Settings } from "#server/platform/settings/settings"

type Snapshot = Effect.Success<ReturnType<typeof decodeSnapshot>>

const isRoomId = Schema.is(RoomId)

const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Time since which node reports are valid. Older reports are of stopped nodes. */
const trustedSince = Effect.map(DateTime.now, (now) =>
  DateTime.subtract(now, { milliseconds: liveLimits.trustMillis })
)

const memberView = (member: Snapshot["members"][number]): LiveRoom["members"][number] => {
  const { absentSince, displayName, droppedAt, id, joinDeadline, joinedAt, playerState } = member
  return {
    id,
    displayName,
    joinedAt: iso(joinedAt),
    connected: absentSince === null && joinDeadline === null,
    absentSince: absentSince === null ? null : iso(droppedAt ?? absentSince),
    state: playerState
  }
}

const roomView = (snapshot: Snapshot, runner: string | null): LiveRoom => {
  const { code, createdAt, graceSeconds, id, maxPlayers, metadata, mode, transport } =
    snapshot.settings
  return {
    id,
    code,
    mode,
    players: snapshot.members.length,
    maxPlayers,
    metadata,
    createdAt: iso(createdAt),
    private: snapshot.settings.private,
    locked: snapshot.locked,
    hostId: snapshot.hostId,
    transport,
    graceSeconds,
    members: snapshot.members.map(memberView),
    state: snapshot.sharedState,
    version: snapshot.version,
    runner
  }
}

const callView = ({ endsAt, ...call }: LiveCall): LiveCalls["calls"][number] => ({
  ...call,
  startedAt: iso(endsAt - voiceCalls.callSeconds * 1000),
  endsAt: iso(endsAt)
})

const runnerView = ({
  document,
  node,
  reportedAt
}: NodeReport): LiveRunners["runners"][number] => ({
  node,
  ...document,
  startedAt: iso(document.startedAt),
  reportedAt: DateTime.formatIso(reportedAt)
})

const unreadable = new Unavailable({
  message: "A newer release wrote this room: finish the upgrade, then look again."
})

const operatorOnly = new NotFound({
  message:
    "The runners belong to the whole service. In production only the operator sees them: " +
    "svc operator runners"
})

/**
 * Reads one room. Shows its runner in development only, since the runner belongs to the whole service.
 */
const makeRoom = Effect.gen(function* () {
  const nodes = yield* NodeRepository
  const rooms = yield* LiveRoomRepository
  const { production } = yield* Settings
  return Effect.fn("LiveViews.room")(function* (environmentId: EnvironmentId, roomId: string) {
    if (!isRoomId(roomId)) return yield* new RoomNotFound()
    const row = yield* rooms.find({ environmentId, roomId })
    if (Option.isNone(row)) return yield* new RoomNotFound()
    const { node, snapshot } = row.value
    const decoded = yield* Effect.mapError(decodeSnapshot(snapshot), () => unreadable)
    if (decoded.closed !== null) return yield* new RoomNotFound()
    const runner = production ? null : yield* nodes.addressOf(node, yield* trustedSince)
    return roomView(decoded, runner)
  })
})

/** Reads of the live entities of one environment, and of the runners. */
export class LiveViews extends Context.Service<LiveViews>()("server/features/live/LiveViews", {
  make: Effect.gen(function* () {
    const nodes = yield* NodeRepository
    const reports = yield* LiveRepository
    const { production } = yield* Settings
    return {
      room: yield* makeRoom,
      calls: Effect.fn("LiveViews.calls")(function* (environmentId: EnvironmentId) {
        const found = yield* reports.read({ environmentId, since: yield* trustedSince })
        const calls = found.flatMap(({ document }) => document.calls ?? [])
        return {
          calls: calls.slice(0, liveLimits.callsMax).map(callView),
          truncated:
            calls.length > liveLimits.callsMax || found.some(({ document }) => document.truncated)
        }
      }),
      /** Reads the runners, for developers of a service outside production. */
      runners: Effect.fn("LiveViews.runners")(function* () {
        if (production) return yield* operatorOnly
        return { runners: (yield* nodes.read(yield* trustedSince)).map(runnerView) }
      })
    }
  })
}) {
  static readonly layer = Layer.effect(LiveViews, this.make)
}
