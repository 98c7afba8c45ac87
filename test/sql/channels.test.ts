/** Rows of channels: a write that arrives late, and an environment that is gone. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { ChannelRepository } from "#sql/channels"
import { poolLayer } from "#sql/database"
import { TestDatabase } from "#testing/app"
import { DatabaseLive } from "../support/service.ts"

const Rows = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) =>
    Layer.provideMerge(
      ChannelRepository.layer,
      poolLayer({ url: Redacted.make(url), connections: 1 })
    )
  )
).pipe(Layer.provide(DatabaseLive))

const row = {
  environmentId: "env_gone",
  name: "@a",
  epoch: 1,
  node: "nod_1",
  managed: false,
  dueAt: null,
  document: "{}",
  writeNumber: 1
}

layer(Rows)("the row of a channel", (it) => {
  it.effect(
    "keeps the later of two writes of one activation when the earlier one arrives last",
    () =>
      Effect.gen(function* () {
        const rows = yield* ChannelRepository
        const sql = yield* SqlClient.SqlClient
        yield* sql`insert into projects (id, name, slug, created_at)
        values ('prj_late', 'late', 'late', now())`
        yield* sql`insert into environments (id, project_id, name, created_at)
        values ('env_late', 'prj_late', 'development', now())`
        const own = { ...row, environmentId: "env_late", epoch: 0, managed: true }
        assert.isTrue(yield* rows.insert(own))
        assert.isTrue(yield* rows.save({ ...own, writeNumber: 8, document: "later" }))
        assert.isFalse(yield* rows.save({ ...own, writeNumber: 7, document: "late" }))
        const claimed = yield* rows.claim("env_late", own.name)
        assert.deepStrictEqual(claimed.stored, { managed: true, document: "later" })
        // The next activation counts from the beginning, perhaps in another process.
        assert.isTrue(yield* rows.save({ ...own, epoch: claimed.epoch, document: "next" }))
        assert.isFalse(yield* rows.save({ ...own, writeNumber: 9, document: "late" }))
      })
  )

  it.effect("refuses to write a channel whose environment is gone, without a database fault", () =>
    Effect.gen(function* () {
      const rows = yield* ChannelRepository
      assert.isFalse(yield* rows.save(row))
      assert.isFalse(yield* rows.insert(row))
      assert.isFalse(yield* rows.exists(row.environmentId, row.name))
    })
  )
})
