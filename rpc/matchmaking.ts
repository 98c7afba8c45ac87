/**
 * Matchmaking. A ticket waits in the queue of its mode. The queue first fills unlocked quick-match
 * rooms that have free seats. Otherwise it opens a room as soon as `minPlayers` tickets wait, or after
 * `fillTimeoutSeconds` with the tickets it has.
 */
import { Schema } from "effect"
import { RpcGroup } from "effect/rpc"
import {
  AlreadyInRoom,
  AlreadyMatching,
  MatchCancelled,
  ModeNotFound,
  NotMatching
} from "./errors/codes.ts"
import { feature } from "./feature.ts"
import { frame } from "./frames.ts"
import { RoomRef } from "./rooms/frames.ts"

/** Waits for a match. The reply follows `room_joined`. */
export const quickMatch = frame(
  "quickMatch",
  "Wait for a match; replies when the player has a seat",
  {
    payload: { mode: Schema.String.check(Schema.isBetweenLength(1, 64)) },
    success: RoomRef,
    errors: [ModeNotFound, AlreadyInRoom, AlreadyMatching, MatchCancelled]
  }
)

/** Stops waiting. `cancelled` is false when the match was already made. */
export const cancelMatch = frame("cancelMatch", "Stop waiting", {
  success: Schema.Struct({ cancelled: Schema.Boolean }),
  errors: [NotMatching]
})

export class MatchmakingFrames extends RpcGroup.make(quickMatch, cancelMatch) {}

export const matchmakingFeature = feature({
  word: "matchmaking",
  groups: []
})
