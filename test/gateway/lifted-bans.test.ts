/** Bans that are lifted before a node learns of them. The nodes of the player's rooms may have seen them. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Stream } from "effect"
import { PlayerBanned } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { Hub } from "#server/links/hub"
import { PlayerConnection } from "#server/links/player-connection"
import { ReservationManager } from "#server/links/reservations"
import { type PlayerStatus, PlayerStatusCache } from "#server/features/players/status-cache"
import { RegistriesLive, startPlayerChanges } from "../support/full-node.ts"

const environmentId = EnvironmentId.make(`env_${"0".repeat(26)}`)
const playerId = PlayerId.make(`pl_${"7".repeat(26)}`)

const lastBan = new PlayerBanned({ details: { sanctionId: "snc_2", expiresAt: null, note: null } })
const status: PlayerStatus = {
  displayName: "Ada",
  declaredAgeBand: null,
  hasBlocks: false,
  banned: undefined,
  lastBan
}

/** How the connection of a player closes that had this last ban when it connected. */
const closesOf = Effect.fnUntraced(function* (lastBanId: string | undefined) {
  const hub = yield* Hub
  const closes: Array<readonly [code: number, reason: string]> = []
  const connectionId = `con_${"0".repeat(26)}`
  const calls = { session: () => Effect.never, peek: () => Effect.succeed(null) }
  hub.connections.add(
    new PlayerConnection({
      player: {
        connectionId,
        environmentId,
        playerId,
        session: undefined,
        displayName: "Ada",
        lastBanId
      },
      sink: {
        push: () => undefined,
        close: (code, reason) => void closes.push([code, reason])
      },
      reservations: new ReservationManager({ connectionId, playerId, calls }),
      run: hub.run,
      onClosed: () => undefined
    })
  )
  const applied = yield* Deferred.make<void>()
  yield* startPlayerChanges(
    Layer.mock(PlayerStatusCache)({
      get: () => Effect.succeed(status),
      changes: Stream.concat(
        Stream.make({ environmentId, playerId }),
        Stream.drain(Stream.fromEffect(Deferred.succeed(applied, undefined)))
      )
    })
  )
  yield* Deferred.await(applied)
  return closes
})

describe("a ban that was lifted before the player's node learned of it", () => {
  it.live("closes the sockets that were open at its time", () =>
    Effect.gen(function* () {
      for (const before of [undefined, "snc_1"]) {
        const closes = closesOf(before).pipe(Effect.scoped, Effect.provide(RegistriesLive))
        assert.deepStrictEqual(yield* closes, [[4003, "player_banned"]])
      }
    })
  )

  it.live("leaves the sockets alone that were opened after it", () =>
    Effect.map(closesOf("snc_2"), (closes) => assert.deepStrictEqual(closes, [])).pipe(
      Effect.scoped,
      Effect.provide(RegistriesLive)
    )
  )
})
