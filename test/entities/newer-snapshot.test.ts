/**
 * Snapshots of another release: what a newer one added is ignored, what an older one did not write has
 * a default, and a format that this release cannot read stays as it is.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { fromRow, toRow as toChannelRow } from "#entities/channel/snapshot"
import { decodeSnapshot, fromStored, toRow } from "#entities/room/snapshot"
import { poolLayer } from "#sql/database"
import { TestApp, TestDatabase } from "#testing/app"
import { at, newPlayer } from "#testing/players"
import { withAddition, withoutAddition } from "../support/additions.ts"
import { errorCode, manage } from "../support/channel-calls.ts"
import { channelOf } from "../support/channel-harness.ts"
import { openRoom } from "../support/opened-room.ts"
import { roomOfThree } from "../support/room-gateways.ts"
import { emptyRoom } from "../support/room-harness.ts"
import { DatabaseLive } from "../support/service.ts"

const links = [{ node: "n1", link: 1, last: 3, forgotten: 0, refusals: [] }]

/** Reads the JSON text of a snapshot and writes it again. */
type Rewrite = (text: string) => Effect.Effect<string, unknown>

const rewriteRoom: Rewrite = Effect.fnUntraced(function* (text) {
  const stored = yield* decodeSnapshot(text)
  return toRow(fromStored(stored), 1, "n1", 0, stored.links).snapshot
})

const rewriteChannel: Rewrite = Effect.fnUntraced(function* (document) {
  const row = { environmentId: "env_1", name: "@a", managed: true, document }
  const { links: executed, state } = yield* fromRow(row, 0)
  return toChannelRow(state, 1, "n1", 0, executed).document
})

const channel = channelOf("ann", "ben")
channel.actor.moderate({ op: "ban", target: "cat" })

const room = roomOfThree({ metadata: { map: "forest" } }).actor.state ?? emptyRoom()

const snapshots = [
  {
    kind: "room",
    text: toRow(room, 1, "n1", 0, links).snapshot,
    rewrite: rewriteRoom
  },
  {
    kind: "channel",
    text: toChannelRow(channel.state, 1, "n1", 0, links).document,
    rewrite: rewriteChannel
  }
]

describe.each(snapshots)("the snapshot of a $kind", ({ rewrite, text }) => {
  const document: Readonly<Record<string, unknown>> = JSON.parse(text)

  it.effect("reads a snapshot of a room or channel as it was written", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(JSON.parse(yield* rewrite(text)), document)
    })
  )

  it.effect(
    "reads a snapshot of a room or channel without what a newer release added at any level",
    () =>
      Effect.gen(function* () {
        const again = yield* rewrite(JSON.stringify(withAddition(document)))
        assert.deepStrictEqual(withoutAddition(JSON.parse(again)), document)
      })
  )

  it.effect(
    "reads a snapshot of a room or channel without what an older release did not write",
    () =>
      Effect.gen(function* () {
        const { format: _, links: __, ...older } = document
        const again: unknown = JSON.parse(yield* rewrite(JSON.stringify(older)))
        assert.deepStrictEqual(again, { ...document, links: [] })
      })
  )

  it.effect("refuses a snapshot of a room or channel in a newer format, with the remedy", () =>
    Effect.gen(function* () {
      const newer = JSON.stringify({ ...document, format: Number(document["format"]) + 1 })
      const error = yield* Effect.flip(rewrite(newer))
      assert.match(String(error), /newer release wrote the snapshot: finish the upgrade/)
    })
  )
})

const Database = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) => poolLayer({ url: Redacted.make(url), connections: 1 }))
)

const AppLive = Layer.mergeAll(TestApp.layerWith(), Database).pipe(Layer.provide(DatabaseLive))

const formats = (sql: SqlClient.SqlClient) => ({
  /** Copies the row of a room under another id and code, in a format of this number. */
  copyRoom: (id: string, copy: { readonly id: string; readonly code: string }, format: number) =>
    sql`
      insert into rooms
      select (jsonb_populate_record(rooms, jsonb_build_object('id', ${copy.id}::text,
        'code', ${copy.code}::text,
        'snapshot', (replace(snapshot, id, ${copy.id})::jsonb
          || jsonb_build_object('format', ${format}::int))::text))).*
      from rooms where id = ${id}`,
  copyChannel: (name: string, copy: string, format: number) => sql`
      insert into channels
      select (jsonb_populate_record(channels, jsonb_build_object('name', ${copy}::text,
        'document', (document::jsonb || jsonb_build_object('format', ${format}::int))::text))).*
      from channels where name = ${name}`
})

layer(AppLive, { timeout: "60 seconds", excludeTestServices: true })(
  "a snapshot in a format that this release cannot read",
  (it) => {
    it.effect(
      "leaves a room in an unreadable format unavailable and unchanged until a release that reads it",
      () =>
        Effect.gen(function* () {
          const app = yield* TestApp
          const sql = yield* SqlClient.SqlClient
          const ada = yield* newPlayer(app, "Ada")
          const bob = yield* newPlayer(app, "Bob")
          const { roomId: id } = yield* openRoom([ada])
          yield* ada.socket.request({ t: "setState", patch: { round: 7 } })
          const written = sql`select 1 from rooms where id = ${id} and snapshot like '%round%'`
          yield* app.eventually(
            Effect.map(written, (rows) => rows.length === 1),
            "the snapshot is written"
          )
          const copy = { id: `${id}x`, code: "WWWWWW" }
          yield* formats(sql).copyRoom(id, copy, 2)
          const snapshot = Effect.map(
            sql<{ snapshot: string }>`select snapshot from rooms where id = ${copy.id}`,
            ([row]) => row?.snapshot
          )
          const before = yield* snapshot
          const refused = yield* bob.socket.request({ t: "join", roomId: copy.id })
          assert.strictEqual(errorCode(refused), "unavailable")
          assert.strictEqual(yield* snapshot, before)

          yield* sql`update rooms set snapshot = ${(before ?? "").replace(/"format": ?2/, '"format":1')}
          where id = ${copy.id}`
          const joined = yield* bob.socket.request({ t: "join", roomId: copy.id })
          assert.strictEqual(at(joined, "ok"), true, JSON.stringify(joined))
          const { room } = yield* bob.socket.next("room_joined")
          assert.deepStrictEqual(at(room, "state"), { round: 7 })
        }),
      { tags: "long" }
    )

    it.effect(
      "leaves a channel in an unreadable format unavailable and unchanged until a release that reads it",
      () =>
        Effect.gen(function* () {
          const listed = `pl_${"0".repeat(26)}`
          const app = yield* TestApp
          const sql = yield* SqlClient.SqlClient
          yield* manage(app, "PUT", "original", { allow: [listed] })
          yield* formats(sql).copyChannel("original", "copy", 2)
          const document = Effect.map(
            sql<{ document: string }>`select document from channels where name = 'copy'`,
            ([row]) => row?.document
          )
          const before = yield* document
          assert.strictEqual((yield* manage(app, "PUT", "copy", { allow: [] })).status, 503)
          assert.strictEqual((yield* manage(app, "DELETE", "copy")).status, 503)
          assert.strictEqual(yield* document, before)

          yield* sql`update channels set document = ${(before ?? "").replace(/"format": ?2/, '"format":1')}
          where name = 'copy'`
          const read = yield* manage(app, "GET", "copy")
          assert.strictEqual(read.status, 200)
          assert.deepStrictEqual(at(read.body, "allow"), [listed])
        })
    )
  }
)
