/** Opens rooms for tests over the socket. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { RoomRef } from "#rpc/rooms/frames"
import type { OnlinePlayer } from "#testing/players"

type Seated = Pick<OnlinePlayer, "socket">

const dataOf = Schema.decodeUnknownSync(Schema.Struct({ data: RoomRef }))

/** Sends a frame that the service must grant; returns the reply. */
export const granted = ({ socket }: Seated, frame: object) =>
  Effect.tap(socket.request(frame), (reply) =>
    Effect.sync(() => assert.strictEqual(reply["ok"], true, JSON.stringify(reply)))
  )

/** The first player creates a room, which the others join in order. */
export const openRoom = Effect.fnUntraced(function* (
  [host, ...others]: readonly [Seated, ...ReadonlyArray<Seated>],
  settings: object = {}
) {
  const created = yield* granted(host, { t: "create", mode: "default", ...settings })
  const room = dataOf(created).data
  for (const player of others) yield* granted(player, { t: "join", roomId: room.roomId })
  return room
})
