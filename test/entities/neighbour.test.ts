/**
 * The calls and snapshots of entities, between this release and the one before: each decodes what the
 * other encodes. Loads the schemas of that release from the history of the repository.
 */
import { createRequire } from "node:module"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { SchemaBinary } from "effect/encoding"
import { Channel } from "#entities/channel/protocol"
import { toRow as toChannelRow } from "#entities/channel/snapshot"
import { MatchmakingQueue } from "#entities/matchmaking-queue/protocol"
import { PlayerSessions } from "#entities/player-session/protocol"
import { Room } from "#entities/room/protocol"
import { roomView } from "#entities/room/model"
import { decodeSnapshot, toRow, wakeFrom } from "#entities/room/snapshot"
import { assertSame } from "../support/additions.ts"
import { channelOf } from "../support/channel-harness.ts"
import { compatibleRelease, skipReason } from "../support/compatible-release.ts"
import { type AnySchema, type Entities, entityCalls, forAll } from "../support/entity-calls.ts"
import { sourcesOf } from "../support/release.ts"
import { roomOfThree } from "../support/room-gateways.ts"

/** Loaded by Node itself, which finds the imports of a module in the folder of its own release. */
const load = createRequire(import.meta.url)

const loadEntities = (folder: string): Entities => {
  const files = ["room", "channel", "matchmaking-queue", "player-session"]
  return Object.assign(
    {},
    ...files.map((name) => load(join(folder, `entities/${name}/protocol.ts`)))
  )
}

/** Sends a value from the older release to the newer one and back. */
const exchangeOf = (older: AnySchema, newer: AnySchema) => {
  const there = SchemaBinary.toCodec(older)
  const here = SchemaBinary.toCodec(newer)
  return (value: unknown): void => {
    const sent = Schema.encodeSync(there)(value)
    const back = Schema.encodeSync(here)(Schema.decodeSync(here)(sent))
    assertSame(Schema.decodeSync(there)(back), Schema.decodeSync(there)(sent))
  }
}

const links = [{ node: "n1", link: 1, last: 3, forgotten: 0, refusals: [] }]

describe("the release before this one", () => {
  const reason = skipReason()
  const note = reason === undefined ? "" : ` (skipped: ${reason})`

  it.effect.skipIf(reason !== undefined)(
    `exchanges every call of an entity with the release before this one${note}`,
    () =>
      Effect.gen(function* () {
        const folder = yield* sourcesOf(compatibleRelease)
        const own = entityCalls({ Room, Channel, MatchmakingQueue, PlayerSessions })
        for (const older of entityCalls(loadEntities(folder))) {
          const newer = own.find(({ name }) => name === older.name)
          if (newer === undefined) return assert.fail(`${older.name} is gone`)
          for (const part of ["payload", "success", "error"] as const) {
            const exchange = exchangeOf(older[part], newer[part])
            yield* forAll(older[part], (value) => {
              const result = Result.try(() => exchange(value))
              if (Result.isFailure(result)) {
                assert.fail(`${older.name}, ${part}: ${String(result.failure)}`)
              }
            })
          }
        }
      }).pipe(Effect.scoped)
  )

  it.effect.skipIf(reason !== undefined)(
    `reads the snapshots of this release by the release before it${note}`,
    () =>
      Effect.gen(function* () {
        const folder = yield* sourcesOf(compatibleRelease)
        const room: typeof import("#entities/room/snapshot") = load(
          join(folder, "entities/room/snapshot.ts")
        )
        const channel: typeof import("#entities/channel/snapshot") = load(
          join(folder, "entities/channel/snapshot.ts")
        )
        const { state } = roomOfThree().actor
        if (state === undefined) return assert.fail("the room is open")
        const written = toRow(state, 1, "n1", 0, links).snapshot
        const stored = yield* room.decodeSnapshot(written)
        const again = room.toRow(room.fromStored(stored), 1, "n1", 0, stored.links).snapshot
        assert.deepInclude(JSON.parse(written), JSON.parse(again))
        const back = wakeFrom(yield* decodeSnapshot(again), 0)
        assert.deepStrictEqual(roomView(back), roomView(state))
        const row = toChannelRow(channelOf("ann", "ben").state, 1, "n1", 0, links)
        const read = yield* channel.fromRow(row, 0)
        assert.deepStrictEqual(read.links, links)
      }).pipe(Effect.scoped)
  )
})
