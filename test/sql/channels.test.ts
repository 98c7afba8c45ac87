/** Rows of channels, where they have none to belong to. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { ChannelRepository } from "#sql/channels"
import { poolLayer } from "#sql/database"
import { TestDatabase } from "#testing/app"
import { DatabaseLive } from "../support/service.ts"

const Rows = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) =>
    Layer.provide(ChannelRepository.layer, poolLayer({ url: Redacted.make(url), connections: 1 }))
  )
).pipe(Layer.provide(DatabaseLive))

const row = {
  environmentId: "env_gone",
  name: "@a",
  epoch: 1,
  node: "nod_1",
  managed: false,
  dueAt: null,
  document: "{}"
}

layer(Rows)("a channel whose environment is gone", (it) => {
  it.effect("does not write a channel whose environment is gone, which is no database fault", () =>
    Effect.gen(function* () {
      const rows = yield* ChannelRepository
      assert.isFalse(yield* rows.save(row))
      assert.isFalse(yield* rows.insert(row))
      assert.isFalse(yield* rows.exists(row.environmentId, row.name))
    })
  )
})
