/**
 * Matchmaking. A ticket waits in the queue of its mode. The queue first fills unlocked quick-match
 * rooms that have free seats. Otherwise it opens a room as soon as `minPlayers` tickets wait, or after
 * `fillTimeoutSeconds` with the tickets it has.
 */
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Rpc, RpcGroup } from "effect/rpc"
import {
  AlreadyInRoom,
  AlreadyMatching,
  MatchCancelled,
  ModeNotFound,
  NotMatching
} from "./errors/codes.ts"
import { feature } from "./feature.ts"
import { commonFrameErrors, RoomRef } from "./rooms.ts"

/** Waits for a match. The reply follows `room_joined`. */
export const quickMatch = Rpc.make("quickMatch", {
  payload: { mode: Schema.String.check(Schema.isBetweenLength(1, 64)) },
  success: RoomRef,
  error: Schema.Union([
    ...commonFrameErrors,
    ModeNotFound,
    AlreadyInRoom,
    AlreadyMatching,
    MatchCancelled
  ])
}).annotate(OpenApi.Summary, "Wait for a match; replies when the player has a seat")

/** Stops waiting. `cancelled` is false when the match was already made. */
export const cancelMatch = Rpc.make("cancelMatch", {
  success: Schema.Struct({ cancelled: Schema.Boolean }),
  error: Schema.Union([...commonFrameErrors, NotMatching])
}).annotate(OpenApi.Summary, "Stop waiting")

export class MatchmakingFrames extends RpcGroup.make(quickMatch, cancelMatch) {}

export const matchmakingFeature = feature({
  word: "matchmaking",
  groups: []
})
