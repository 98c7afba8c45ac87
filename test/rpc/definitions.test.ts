/** The public definitions and the feature list of an environment. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { configure, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { codeOf, newGame } from "../support/players.ts"

const Node = nodeWith({ SVC_FEATURES: "saves,stats,statsVerification,multiplayer" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

const game = {
  resetTimeZone: "Asia/Tokyo",
  features: { saves: true, stats: true, statsVerification: true },
  stats: [{ key: "kills", title: { en: "Kills", ja: "キル" }, maxPerSubmit: 31_337 }],
  multiplayer: { modes: [{ key: "duel", title: "Duel", maxPlayers: 2 }] },
  auth: { redirectUrls: ["https://secret-redirect.example/*"] },
  web: { allowedOrigins: ["https://secret-origin.example"] },
  integrity: {
    stats: {
      rules: [{ stat: "kills", max: 31_338 }],
      maxSubmitsPerMinute: 599,
      webhook: { url: "https://secret-hook.example/" }
    }
  }
}

layer(Node)("definitions", (it) => {
  const gameWith = Effect.fnUntraced(function* (document: object) {
    const created = yield* newGame(document)
    const { publishableKey, url } = created
    const read = (headers: Readonly<Record<string, string>> = {}, key = publishableKey) =>
      request(`${url}/v1/gamedata/definitions`, { headers: { "x-svc-key": key, ...headers } })
    return { ...created, read }
  })

  it.effect("publishes the public part of the config, and nothing else", () =>
    Effect.gen(function* () {
      const { read } = yield* gameWith(game)
      const answer = yield* read()
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.body, {
        configVersion: 1,
        resetTimeZone: "Asia/Tokyo",
        features: {
          emailLogin: false,
          saves: true,
          stats: true,
          multiplayer: false,
          realtimeChannels: false,
          voice: false,
          hosting: false,
          statsVerification: true
        },
        stats: [{ key: "kills", title: { en: "Kills", ja: "キル" }, aggregation: "sum" }],
        modes: [
          {
            key: "duel",
            title: "Duel",
            minPlayers: 2,
            maxPlayers: 2,
            fillTimeoutSeconds: 15,
            transport: "server"
          }
        ],
        providers: [],
        share: { images: false, links: false, tracking: false, inAppBrowser: false },
        audience: "general",
        news: { optIn: true }
      })
      assert.notMatch(JSON.stringify(answer.body), /secret|31337|31338|599/)
    })
  )

  it.effect("caches definitions for a minute, and answers 304 while they are unchanged", () =>
    Effect.gen(function* () {
      const { read, tenant } = yield* gameWith(game)
      const first = yield* read()
      assert.strictEqual(first.headers.get("cache-control"), "max-age=60")
      assert.strictEqual(first.headers.get("vary"), "Origin, X-Svc-Key")
      const etag = first.headers.get("etag") ?? ""
      assert.strictEqual(etag, '"1"')
      for (const tag of [etag, `W/${etag}`, `"0", ${etag}`, "*"]) {
        const unchanged = yield* read({ "if-none-match": tag })
        assert.strictEqual(unchanged.status, 304, tag)
        assert.strictEqual(unchanged.body, "")
        assert.strictEqual(unchanged.headers.get("etag"), etag)
        assert.strictEqual(unchanged.headers.get("cache-control"), "max-age=60")
      }
      yield* configure(tenant, { ...game, audience: "kids" })
      const changed = yield* read({ "if-none-match": etag })
      assert.strictEqual(changed.status, 200)
      assert.strictEqual(changed.headers.get("etag"), '"2"')
      assert.deepStrictEqual(at(changed.body, "news"), { optIn: false })
    })
  )

  it.effect("publishes the defaults in a new environment, without a player", () =>
    Effect.gen(function* () {
      const { read, secretKey } = yield* gameWith({})
      const answer = yield* read()
      assert.deepStrictEqual(at(answer.body, "stats"), [])
      assert.deepStrictEqual(at(answer.body, "modes", 0, "key"), "default")
      assert.strictEqual(codeOf(yield* read({}, secretKey)), "invalid_key")
      assert.strictEqual(codeOf(yield* read({}, "")), "invalid_key")
    })
  )
})

layer(Node)("features", (it) => {
  it.effect("lists features with their config path, state and availability", () =>
    Effect.gen(function* () {
      const { server } = yield* newGame(game)
      const { body, status } = yield* server("GET", "/v1/admin/features")
      assert.strictEqual(status, 200)
      const features = Array.from(Object(at(body, "features")))
      const named = (key: string) => features.find((feature) => at(feature, "key") === key)
      assert.lengthOf(features, 9)
      for (const feature of features)
        assert.match(String(at(feature, "description")), /^[A-Z].*\.$/)
      assert.deepStrictEqual(named("saves"), {
        key: "saves",
        title: "Cloud saves",
        description: "Saves of each player as JSON, on every device that the player signs in on.",
        configPath: "features.saves",
        source: "config",
        enabled: true,
        offered: true
      })
      assert.deepStrictEqual(
        ["multiplayer", "voice"].map((key) => [
          at(named(key), "enabled"),
          at(named(key), "offered")
        ]),
        [
          [false, true],
          [false, false]
        ]
      )
      assert.strictEqual(at(named("functions"), "source"), "endpoint")
    })
  )

  it.effect("requires a secret key to list features", () =>
    Effect.gen(function* () {
      const { publishableKey, url } = yield* newGame({})
      const answer = yield* request(`${url}/v1/admin/features`, {
        headers: { "x-svc-key": publishableKey }
      })
      assert.strictEqual(codeOf(answer), "invalid_key")
    })
  )
})
