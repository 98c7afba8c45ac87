/**
 * Matchmaking (spec section 4.4, decisions 3.8): a ticket waits in the queue of its mode. A live
 * unlocked quick-match room with a free seat is filled first; otherwise a room opens as soon as
 * `minPlayers` wait, or after `fillTimeoutSeconds` with whoever waits.
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
import { commonFrameErrors, RoomRef } from "./rooms.ts"

/** Wait for a match; the reply comes when seated, after `room_joined`. */
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
}).annotate(OpenApi.Summary, "Wait for a match; the reply comes when seated")

/** Stop waiting; `cancelled` is false when the match was already made. */
export const cancelMatch = Rpc.make("cancelMatch", {
  success: Schema.Struct({ cancelled: Schema.Boolean }),
  error: Schema.Union([...commonFrameErrors, NotMatching])
}).annotate(OpenApi.Summary, "Stop waiting")

export class MatchmakingFrames extends RpcGroup.make(quickMatch, cancelMatch) {}
