/**
 * What each client frame does (spec section 4.4), once for both doors. Frames that only speak to the
 * room are handed to its line and cost no fiber; those that move the player are effects that end with
 * the connection.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SecureRandom } from "effect/crypto"
import { type CodedError, NotInRoom } from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import type { JsonObject } from "#rpc/rooms"
import type { RoomRepository } from "#sql/rooms"
import type { PlayerCommand } from "#entities/room/messages"
import type { Throttles } from "#server/platform/throttles"
import { replyWith, oversized, refuse } from "#server/links/answering"
import type { ReplyCallback } from "#server/links/entity-link"
import type { FrameHandlers } from "#server/links/frames"
import type { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { channelFrames, type ChannelServices } from "#server/features/channels/frames"
import type { Configs } from "#server/features/config/service"
import { cancelMatch, quickMatch } from "#server/features/matchmaking/frames"
import { iceServersOf, type TurnServers } from "#server/features/peers/frames"
import { createRoom, joinRoom, leaveRoom, resumeRoom } from "#server/features/rooms/frames"

/** What the effects behind the frames stand on. */
type FrameServices =
  | Hub
  | ChannelServices
  | Configs
  | TurnServers
  | RoomRepository
  | SecureRandom.SecureRandom
  | Throttles

/** Hands a command to the room the connection is in. */
const tell = <Data>(
  connection: PlayerConnection,
  command: PlayerCommand,
  answered: ReplyCallback<Data> | undefined,
  read: (data: JsonObject) => Data
): void => {
  if (connection.room === undefined) return refuse(connection, answered, new NotInRoom())
  connection.room.send(
    command,
    answered === undefined
      ? undefined
      : (answer) => {
          if (answer.ok) answered({ ok: true, data: read(answer.data) })
          else if (answer.error._tag !== "room_not_found") answered(answer)
          else answered({ ok: false, error: new NotInRoom() })
        }
  )
}

const nothing = () => ({})

const signalled = ({ delivered: count }: JsonObject) => ({ delivered: Number(count) })

const delivered = ({ delivered: count }: JsonObject) =>
  typeof count === "number" ? { delivered: count } : {}

/** Frames for the room, without a fiber. */
const toRoom: Pick<FrameHandlers, "send" | "setState" | "setMyState" | "lock" | "signal"> = {
  send: (connection, frame, answered) => {
    const { playerId } = connection
    const refusal = oversized(connection, frame.data, rooms.sendDataMaxBytes)
    if (refusal !== undefined) return refuse(connection, answered, refusal)
    tell(connection, { t: "send", playerId, ...frame }, answered, delivered)
  },
  signal: (connection, frame, answered) => {
    const { playerId } = connection
    const refusal = oversized(connection, frame.data, rooms.signalDataMaxBytes)
    if (refusal !== undefined) return refuse(connection, answered, refusal)
    tell(connection, { t: "signal", playerId, ...frame }, answered, signalled)
  },
  setState: (connection, { patch }, answered) => {
    const { playerId } = connection
    tell(connection, { t: "setState", playerId, patch }, answered, nothing)
  },
  setMyState: (connection, { patch }, answered) => {
    const { playerId } = connection
    tell(connection, { t: "setMyState", playerId, patch }, answered, nothing)
  },
  lock: (connection, { locked }, answered) => {
    const { playerId } = connection
    tell(connection, { t: "lock", playerId, locked }, answered, nothing)
  }
}

/** Leaves the room, or the queue. */
const leave = Effect.fnUntraced(function* (connection: PlayerConnection) {
  if (connection.room !== undefined) return yield* leaveRoom(connection, connection.room)
  if (connection.ticket === undefined) return yield* new NotInRoom()
  const { cancelled } = yield* cancelMatch(connection)
  if (!cancelled) return yield* new NotInRoom()
  return {}
})

/** What moves the player begins when what came before it is done. */
const inTurn =
  <Payload, A, R>(
    effect: (connection: PlayerConnection, payload: Payload) => Effect.Effect<A, CodedError, R>
  ) =>
  (connection: PlayerConnection, payload: Payload): Effect.Effect<A, CodedError, R> =>
    connection.steps.withPermits(1)(effect(connection, payload))

/** The frames' behaviour on this node. */
export class Frames extends Context.Service<Frames, FrameHandlers>()(
  "server/gateway/frame-handlers/Frames"
) {
  static readonly layer = Layer.effect(
    Frames,
    Effect.gen(function* () {
      const services = yield* Effect.context<FrameServices>()
      const clock = yield* Clock.Clock
      const effectful = replyWith(services)
      return Frames.of({
        ...toRoom,
        ...channelFrames(services, () => clock.currentTimeMillisUnsafe()),
        create: effectful("create", inTurn(createRoom)),
        join: effectful("join", inTurn(joinRoom)),
        resume: effectful(
          "resume",
          inTurn((connection, { roomId }) => resumeRoom(connection, roomId))
        ),
        leave: effectful("leave", inTurn(leave)),
        quickMatch: effectful("quickMatch", quickMatch),
        cancelMatch: effectful("cancelMatch", inTurn(cancelMatch)),
        iceServers: effectful("iceServers", iceServersOf),
        ping: effectful("ping", () => Effect.map(Clock.currentTimeMillis, (at) => ({ at })))
      })
    })
  )
}
