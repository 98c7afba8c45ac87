/** Frames of rights in rooms: moderation by the host, votes and teams. */
import { type Context, Effect } from "effect"
import { type CodedError, NotInRoom, Unavailable } from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/json"
import { actCommand, isConfirmed, type RoomAct } from "#entities/room/acts"
import { Throttles } from "#server/platform/throttles"
import { replyWith } from "#server/links/frame-effects"
import type { FrameHandlers, FramePayload } from "#server/links/frame-handler"
import type { PlayerConnection } from "#server/links/player-connection"
import type { RoomHandle } from "#server/links/subscriber"
import { requestOfRoom } from "./service.ts"

/** `roomModerate`, for each player. */
export const roomModeration = { burst: 20, seconds: 60 } as const

/** Starts of votes, for each player: some end at once, without a rest. */
export const voteStarts = { burst: 6, seconds: 60 } as const

/** The room of the connection, once a seat that is being taken is taken. */
const roomOf = (connection: PlayerConnection): Effect.Effect<RoomHandle, NotInRoom> =>
  Effect.callback((resume) => {
    const found = (): void => {
      const { room } = connection
      resume(room === undefined ? Effect.fail(new NotInRoom()) : Effect.succeed(room))
    }
    if (connection.room !== undefined || !connection.afterEntry(found)) found()
  })

/** Lets the player act in its room. A room on a runner that does not know acts confirms none. */
const act = (
  connection: PlayerConnection,
  roomAct: RoomAct
): Effect.Effect<JsonObject, CodedError> =>
  Effect.gen(function* () {
    const room = yield* roomOf(connection)
    const data = yield* requestOfRoom(room, actCommand(connection.playerId, roomAct))
    return isConfirmed(data) ? data : yield* new Unavailable()
  })

const moderate = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { playerId: target, ...frame }: FramePayload<"roomModerate">
) {
  const throttles = yield* Throttles
  yield* throttles.take(roomModeration, `moderate:${connection.playerId}`)
  yield* act(connection, { t: "moderate", target, ...frame })
  return {}
})

const voteAct = ({ op, playerId, voteId = "", yes = false }: FramePayload<"vote">): RoomAct =>
  op === undefined
    ? { t: "castVote", voteId, yes }
    : { t: "startVote", op, ...(playerId === undefined ? {} : { target: playerId }) }

const vote = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"vote">
) {
  const throttles = yield* Throttles
  if (frame.op !== undefined) yield* throttles.take(voteStarts, `vote:${connection.playerId}`)
  const { voteId } = yield* act(connection, voteAct(frame))
  return { voteId: String(voteId) }
})

/** Handlers of a player's frames of rights in its room. */
export const authorityFrames = (
  services: Context.Context<Throttles>
): Pick<FrameHandlers, "roomModerate" | "setTeam" | "vote"> => {
  const effectful = replyWith(services)
  return {
    roomModerate: effectful("roomModerate", moderate),
    vote: effectful("vote", vote),
    setTeam: effectful("setTeam", (connection: PlayerConnection, { team }) =>
      Effect.as(act(connection, { t: "setTeam", team }), {})
    )
  }
}
