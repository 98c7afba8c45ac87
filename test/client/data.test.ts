/** The typed client's saves, stats and definitions, against the real service. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Client, createClient, isError, memoryStorage } from "#client/client"
import { TestApp } from "#testing/app"
import { configure } from "#testing/players"
import { rejection } from "../support/client/waits.ts"
import { AppLive } from "../support/service.ts"

const document = {
  features: { saves: true, stats: true },
  stats: [{ key: "kills" }, { key: "best", aggregation: "max", maxPerSubmit: 10 }]
}

const newClient: Effect.Effect<Client, never, TestApp> = Effect.gen(function* () {
  const app = yield* TestApp
  yield* configure(app, document)
  const { publishableKey: key, url: baseUrl } = app
  return createClient({ baseUrl, key, storage: memoryStorage() })
})

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("the client", (it) => {
  it.effect("stores saves, and rejects a write over another device's version", () =>
    Effect.gen(function* () {
      const { saves } = yield* newClient
      assert.isNull(yield* ask(() => saves.get("slot-1")))
      const item = yield* ask(() => saves.put("slot-1", { level: 3 }, { ifVersion: 0 }))
      assert.strictEqual(item.version, 1)
      yield* ask(() => saves.put("slot-1", { level: 4 }))
      const save = yield* ask(() => saves.get("slot-1"))
      assert.deepStrictEqual(save?.data, { level: 4 })
      const error = yield* rejection(() => saves.put("slot-1", null, { ifVersion: 1 }))
      assert.isTrue(isError(error, "version_conflict") && error.details.currentVersion === 2)
      assert.deepStrictEqual(
        (yield* ask(() => saves.list())).map(({ key, version }) => ({ key, version })),
        [{ key: "slot-1", version: 2 }]
      )
      yield* ask(() => saves.delete("slot-1", { ifVersion: 2 }))
      const gone = yield* rejection(() => saves.delete("slot-1"))
      assert.isTrue(isError(gone, "save_not_found"))
      assert.isTrue(isError(yield* rejection(() => saves.put("/", 1)), "invalid_request"))
    })
  )

  it.effect("counts a stats report once for each idempotency key", () =>
    Effect.gen(function* () {
      const { stats } = yield* newClient
      assert.deepStrictEqual(yield* ask(() => stats.get()), {})
      const first = yield* ask(() => stats.report({ kills: 2, best: 11 }))
      assert.strictEqual(first.stats["kills"]?.daily, 2)
      assert.deepStrictEqual(first.rejected, [
        { stat: "best", value: 11, reason: "above_max_per_submit" }
      ])
      const named = { idempotencyKey: "match-7" }
      const second = yield* ask(() => stats.report({ kills: 5 }, named))
      assert.deepStrictEqual(yield* ask(() => stats.report({ kills: 5 }, named)), second)
      assert.deepStrictEqual(yield* ask(() => stats.get()), { kills: 7 })
      const reused = yield* rejection(() => stats.report({ kills: 6 }, named))
      assert.isTrue(isError(reused, "idempotency_key_reused"))
    })
  )

  it.effect("reads the public definitions without a player", () =>
    Effect.gen(function* () {
      const client = yield* newClient
      const definitions = yield* ask(() => client.definitions())
      assert.deepStrictEqual(
        definitions.stats.map(({ key }) => key),
        ["kills", "best"]
      )
      assert.isTrue(definitions.features.saves)
      assert.isNull(client.sessions.player)
    })
  )
})
