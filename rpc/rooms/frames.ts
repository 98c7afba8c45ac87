/**
 * Frames of rooms. One `Rpc` declares each frame. The JSON frame decoder, the typed client, the frame
 * tables of the API page and the native RPC endpoint derive from it.
 */
import { Schema } from "effect"
import { RpcGroup } from "effect/rpc"
import { configLimits } from "../config-document/limits.ts"
import {
  AlreadyInRoom,
  AlreadyMatching,
  CodeTaken,
  HostOnly,
  ModeNotFound,
  NotInRoom,
  P2pRoomFull,
  PayloadTooLarge,
  ResumeExpired,
  RoomFull,
  RoomLocked,
  RoomNotFound,
  StateTooLarge
} from "../errors/codes.ts"
import { Done, frame } from "../frames.ts"
import { JsonObject, MessageData } from "../json.ts"
import { ChosenRoomCode, TypedCode } from "../typed-codes.ts"
import { roomModerate, setTeam, vote } from "./authority.ts"
import { roomLimits } from "./limits.ts"

const ShortText = Schema.String.check(Schema.isBetweenLength(1, 64))

/** The room in which the player now has a seat. */
export const RoomRef = Schema.Struct({ roomId: Schema.String, code: Schema.String })
export type RoomRef = typeof RoomRef.Type

/** Opens a room. The player takes the first seat and becomes the host. */
export const create = frame("create", "Open a room and become its host", {
  payload: {
    mode: ShortText,
    private: Schema.optionalKey(Schema.Boolean),
    maxPlayers: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: configLimits.playersMax }))
    ),
    metadata: Schema.optionalKey(JsonObject),
    code: Schema.optionalKey(ChosenRoomCode),
    hostOnlyState: Schema.optionalKey(Schema.Boolean)
  },
  success: RoomRef,
  errors: [ModeNotFound, CodeTaken, AlreadyInRoom, AlreadyMatching, PayloadTooLarge]
})

/** Takes a seat in a room, by its id or code. */
export const join = frame("join", "Join a room by its id or code", {
  payload: Schema.Struct({
    roomId: Schema.optionalKey(ShortText),
    code: Schema.optionalKey(TypedCode)
  }).check(
    Schema.makeFilter((frame) =>
      (frame.roomId === undefined) === (frame.code === undefined)
        ? "Give either roomId or code. The typed client has join(code) and join({ roomId })"
        : undefined
    )
  ),
  success: RoomRef,
  errors: [RoomNotFound, RoomFull, P2pRoomFull, RoomLocked, AlreadyInRoom, AlreadyMatching]
})

/** Frees the seat of the player. */
export const leave = frame("leave", "Give up the seat", {
  success: Done,
  errors: [NotInRoom]
})

/** Returns to the reserved seat after a disconnect. */
export const resume = frame("resume", "Return to the reserved seat after a disconnect", {
  payload: { roomId: ShortText },
  success: RoomRef,
  errors: [ResumeExpired]
})

/** Sends a message to all other members, or only to those in `to`. */
export const send = frame("send", "Send a message to all other members, or only to those in `to`", {
  payload: {
    type: Schema.String.check(Schema.isBetweenLength(1, roomLimits.typeMaxCharacters)),
    data: Schema.optionalKey(MessageData),
    to: Schema.optionalKey(
      Schema.Array(Schema.String).check(Schema.isMaxLength(roomLimits.sendTargetsMax))
    )
  },
  success: Schema.Struct({ delivered: Schema.optionalKey(Schema.Int) }),
  errors: [NotInRoom, PayloadTooLarge]
})

/** Merges top-level keys into the room's state; null deletes a key. */
export const setState = frame("setState", "Merge keys into the room's state; null deletes", {
  payload: { patch: JsonObject },
  success: Done,
  errors: [NotInRoom, HostOnly, StateTooLarge]
})

/** Merges top-level keys into the player's own state; null deletes a key. */
export const setMyState = frame(
  "setMyState",
  "Merge keys into the player's own state; null deletes",
  {
    payload: { patch: JsonObject },
    success: Done,
    errors: [NotInRoom, StateTooLarge]
  }
)

/** Locks the room to new players, or unlocks it. */
export const lock = frame("lock", "Lock the room to new players, or unlock it", {
  payload: { locked: Schema.Boolean },
  success: Done,
  errors: [NotInRoom, HostOnly]
})

export class RoomFrames extends RpcGroup.make(
  create,
  join,
  leave,
  resume,
  send,
  setState,
  setMyState,
  lock,
  roomModerate,
  vote,
  setTeam
) {}
