/**
 * Frames of rooms. Frames that only concern the room go to its link and cost no fiber. Frames that
 * change the player's place are effects that end with the connection.
 */
import { type Context, Effect, Option } from "effect"
import type { SecureRandom } from "effect/crypto"
import {
  type CodedError,
  InvalidFrame,
  NotInRoom,
  PayloadTooLarge,
  ResumeExpired,
  RoomNotFound
} from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/json"
import { roomLimits } from "#rpc/rooms/limits"
import { RoomRepository } from "#sql/rooms"
import type { OpenRoom, PlayerCommand } from "#entities/room/messages"
import { jsonBytes } from "#entities/json-bytes"
import { Throttles } from "#server/platform/throttles"
import { callEntityWithRetry } from "#server/links/entity-call"
import type { ReplyCallback } from "#server/links/entity-link"
import { replyWith } from "#server/links/frame-effects"
import {
  type FrameHandlers,
  type FramePayload,
  oversized,
  refuse
} from "#server/links/frame-handler"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import type { Configs } from "../config/service.ts"
import { enterRoom, joiningPlayerOf, modeOf, roomOfMode, withSeat } from "./service.ts"

export const roomCodeThrottles = {
  /**
   * Joins by code of one player, and wrong codes from one IP address. Both stop an attacker from
   * guessing codes, even with many players.
   */
  roomCodesPerPlayer: { burst: 30, seconds: 60 },
  wrongRoomCodesPerAddress: { burst: 60, seconds: 900 }
} as const

/** The services that the frames of rooms need. */
export type RoomServices = Hub | Configs | RoomRepository | SecureRandom.SecureRandom | Throttles

/** Creates a room and takes its first seat. */
const createRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"create">
) {
  const hub = yield* Hub
  const mode = yield* modeOf(connection.environmentId, frame.mode)
  const metadata = frame.metadata ?? {}
  if (jsonBytes(metadata) > roomLimits.metadataMaxBytes) {
    return yield* new PayloadTooLarge({ details: { limit: roomLimits.metadataMaxBytes } })
  }
  const maxPlayers = frame.maxPlayers ?? mode.maxPlayers
  if (maxPlayers > mode.maxPlayers) {
    const message = `Expected at most ${mode.maxPlayers}, the mode's maxPlayers`
    return yield* InvalidFrame.at("maxPlayers", message)
  }
  const roomId = yield* hub.newRoomId
  const open: OpenRoom = {
    ...roomOfMode(connection.environmentId, mode),
    private: frame.private ?? false,
    hostOnlyState: frame.hostOnlyState ?? false,
    maxPlayers,
    metadata,
    code: frame.code ?? null,
    joiningPlayers: [joiningPlayerOf(hub.node, connection)]
  }
  const opened = callEntityWithRetry(hub.roomClient(roomId).Open({ open }))
  return yield* withSeat(connection, roomId, Effect.andThen(opened, enterRoom(connection, roomId)))
})

/**
 * Whether a text may be an id or code. Both consist of word characters, so other text needs no look-up.
 */
const isReference = (text: string): boolean => /^\w+$/.test(text)

/** The key of the limit of wrong codes from an address. */
const wrongCodesKey = (environmentId: string, address: string): string =>
  `codes:${environmentId}:${address}`

/**
 * Finds the room of a code. The limit per address counts only wrong codes, so that many players behind
 * one address can meet.
 */
const findByCode = Effect.fnUntraced(function* (connection: PlayerConnection, code: string) {
  const repository = yield* RoomRepository
  const throttles = yield* Throttles
  const { address, environmentId, playerId } = connection
  yield* throttles.take(roomCodeThrottles.roomCodesPerPlayer, `code:${playerId}`)
  if (address === undefined) return yield* repository.findByCode(environmentId, code, playerId)
  const key = wrongCodesKey(environmentId, address)
  yield* throttles.take(roomCodeThrottles.wrongRoomCodesPerAddress, key)
  const found = yield* repository.findByCode(environmentId, code, playerId)
  if (Option.isSome(found)) yield* throttles.refund(key)
  return found
})

/**
 * Finds a room by id or code that is there for the player. Checks that it exists, so that an invented id
 * wakes no entity. A host who has blocked the player costs the statement that an unknown id does.
 */
const findRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { code, roomId = "" }: FramePayload<"join">
) {
  const hub = yield* Hub
  const repository = yield* RoomRepository
  const { environmentId, playerId } = connection
  if (!isReference(code ?? roomId)) return Option.none<string>()
  if (code !== undefined) return yield* findByCode(connection, code)
  const here = hub.isRoomHereFor(environmentId, roomId, playerId)
  if (here === true) return Option.some(roomId)
  const stored = yield* repository.findById(environmentId, roomId, playerId)
  const isThere = here ?? stored ?? hub.knowsRoom(environmentId, roomId)
  return isThere ? Option.some(roomId) : Option.none()
})

/**
 * Counts a code as a wrong one when its room does not take the player, who must not learn more than from
 * a code of no room.
 */
const countWrongCode = Effect.fnUntraced(function* (
  { address, environmentId }: PlayerConnection,
  code: string | undefined
) {
  if (code === undefined || address === undefined) return
  const throttles = yield* Throttles
  const key = wrongCodesKey(environmentId, address)
  yield* throttles.take(roomCodeThrottles.wrongRoomCodesPerAddress, key)
})

/** Takes a seat in the room of an id or code. */
const joinRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"join">
) {
  const roomId = yield* findRoom(connection, frame)
  if (Option.isNone(roomId)) return yield* new RoomNotFound()
  return yield* withSeat(connection, roomId.value, enterRoom(connection, roomId.value)).pipe(
    Effect.tapError(({ _tag }) =>
      _tag === "room_not_found" ? countWrongCode(connection, frame.code) : Effect.void
    )
  )
})

/** Error codes that mean that the player has no seat to return to. */
const seatGone: ReadonlySet<string> = new Set([
  "already_in_room",
  "already_matching",
  "room_not_found"
])

/** Returns to the player's reserved seat in a room. */
const resumeRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { roomId }: FramePayload<"resume">
) {
  const hub = yield* Hub
  const repository = yield* RoomRepository
  const { environmentId } = connection
  const exists =
    isReference(roomId) &&
    (hub.knowsRoom(environmentId, roomId) ||
      (yield* repository.findById(environmentId, roomId, null)) !== undefined)
  if (!exists) return yield* new ResumeExpired()
  return yield* Effect.mapError(
    withSeat(connection, roomId, enterRoom(connection, roomId, "resume")),
    (error) => (seatGone.has(error._tag) ? new ResumeExpired() : error)
  )
})

/** Sends a command to the connection's room. */
const sendToRoom = <Data>(
  connection: PlayerConnection,
  command: PlayerCommand,
  onReply: ReplyCallback<Data> | undefined,
  read: (data: JsonObject) => Data
): void => {
  const { room } = connection
  if (room === undefined) {
    const again = (): void => sendToRoom(connection, command, onReply, read)
    if (connection.afterEntry(again)) return
    return refuse(connection, onReply, new NotInRoom())
  }
  if (onReply === undefined) return room.send(command)
  room.send(command, (result) => {
    if (result.ok) onReply({ ok: true, data: read(result.data) })
    else if (result.error._tag !== "room_not_found") onReply(result)
    else onReply({ ok: false, error: new NotInRoom() })
  })
}

const noData = () => ({})

const signalData = ({ delivered }: JsonObject) => ({ delivered: Number(delivered) })

const sendData = ({ delivered }: JsonObject) => (typeof delivered === "number" ? { delivered } : {})

type RoomFrameType = "create" | "join" | "resume" | "send" | "setState" | "setMyState" | "lock"

/** Handlers of a player's frames for rooms. They include `signal`, which travels like a message. */
export const roomFrames = (
  services: Context.Context<RoomServices>
): Pick<FrameHandlers, RoomFrameType | "signal"> => {
  const effectful = replyWith(services)
  const entering =
    <Payload, A, R>(
      effect: (connection: PlayerConnection, payload: Payload) => Effect.Effect<A, CodedError, R>
    ) =>
    (connection: PlayerConnection, payload: Payload) =>
      connection.entering(effect(connection, payload))
  return {
    create: effectful("create", entering(createRoom)),
    join: effectful("join", entering(joinRoom)),
    resume: effectful("resume", entering(resumeRoom)),
    send: (connection, frame, onReply, frameBytes) => {
      const { playerId } = connection
      const error = oversized(frameBytes, frame.data, roomLimits.sendDataMaxBytes)
      if (error !== undefined) return refuse(connection, onReply, error)
      sendToRoom(connection, { t: "send", playerId, ...frame }, onReply, sendData)
    },
    signal: (connection, frame, onReply, frameBytes) => {
      const { playerId } = connection
      const error = oversized(frameBytes, frame.data, roomLimits.signalDataMaxBytes)
      if (error !== undefined) return refuse(connection, onReply, error)
      sendToRoom(connection, { t: "signal", playerId, ...frame }, onReply, signalData)
    },
    setState: (connection, { patch }, onReply) => {
      const { playerId } = connection
      sendToRoom(connection, { t: "setState", playerId, patch }, onReply, noData)
    },
    setMyState: (connection, { patch }, onReply) => {
      const { playerId } = connection
      sendToRoom(connection, { t: "setMyState", playerId, patch }, onReply, noData)
    },
    lock: (connection, { locked }, onReply) => {
      const { playerId } = connection
      sendToRoom(connection, { t: "lock", playerId, locked }, onReply, noData)
    }
  }
}
