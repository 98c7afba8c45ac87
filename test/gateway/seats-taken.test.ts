/** Seats that are taken after a ban was applied: the change of the player found no seat. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Stream } from "effect"
import { PlayerBanned } from "#rpc/errors/codes"
import type { RoomOutput } from "#entities/room/messages"
import { type PlayerStatus, PlayerStatusCache } from "#server/features/players/status-cache"
import { at } from "#testing/players"
import { fillNode, RegistriesLive, startPlayerChanges } from "../support/full-node.ts"

const playerId = `pl_${"7".repeat(26)}`
const joiningPlayer = {
  node: "node",
  connectionId: "con",
  displayName: "Ada",
  playerId,
  relayOnly: true
}
const status: PlayerStatus = {
  displayName: "Ada",
  declaredAgeBand: null,
  hasBlocks: false,
  banned: undefined,
  lastBan: undefined
}
const banned = new PlayerBanned({ details: { sanctionId: "snc", expiresAt: null, note: null } })

const statuses = Layer.mock(PlayerStatusCache)({
  get: (_, id) => Effect.succeed(id === playerId ? { ...status, banned, lastBan: banned } : status),
  changes: Stream.never
})

describe("a player who was banned before taking a seat", () => {
  it.live(
    "removes a player who was banned before taking a seat after the members have seen the join",
    () =>
      Effect.gen(function* () {
        const [room] = (yield* fillNode({ environments: 1, connections: 1, rooms: 1 })).rooms
        if (room === undefined) return assert.fail("no room")
        yield* startPlayerChanges(statuses)
        const outputs: Array<RoomOutput> = []
        const watcher = {
          send: (sent: ReadonlyArray<RoomOutput>) => void outputs.push(...sent),
          end: () => undefined
        }
        room.attach("node", watcher, 0, [])
        // A ticket without a seat would wait for another match.
        assert.deepStrictEqual(room.seat([joiningPlayer]), Result.succeed([playerId]))
        while (room.state?.members.has(playerId) === true) yield* Effect.yieldNow
        const events = outputs.flatMap((output) =>
          output.kind === "event" && output.to === null ? [JSON.parse(output.frame)] : []
        )
        assert.deepStrictEqual(
          events.map((event) => [at(event, "t"), at(event, "reason")]),
          [
            ["player_joined", undefined],
            ["player_left", "banned"]
          ]
        )
      }).pipe(Effect.scoped, Effect.provide(RegistriesLive))
  )
})
