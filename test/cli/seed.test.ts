/** `svc seed` against a real service: what it creates, a second run, bots, and production. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { seededPlayers, statValue } from "#cli/seed-players"
import { TestApp } from "#testing/app"
import { at, configure, request } from "#testing/players"
import { makeFolder } from "../support/cli/svc.ts"
import { DatabaseLive } from "../support/service.ts"

describe("seededPlayers", () => {
  it("begins a longer list of seeded players with the shorter one", () => {
    fc.assert(
      fc.property(fc.nat(300), fc.nat(300), (a, b) => {
        const [short, long] = [Math.min(a, b), Math.max(a, b)]
        assert.deepStrictEqual(seededPlayers(long).slice(0, short), seededPlayers(short))
      }),
      { numRuns: 20 }
    )
  })

  it("gives every player a name of its own that the service accepts", () => {
    const names = seededPlayers(1000).map(({ name }) => name)
    assert.strictEqual(new Set(names.map((name) => name.toLowerCase())).size, 1000)
    for (const name of names) assert.match(name, /^[A-Za-z0-9_]{3,32}$/)
  })

  it("keeps the names of the first release, by which a second run finds the players", () => {
    assert.deepStrictEqual(
      seededPlayers(4).map(({ name }) => name),
      ["wolf_lars", "LuckyMoth", "Leila46", "moth_leila"]
    )
  })

  it("seeds 8 accounts, 8 bans and 4 appeals among 200 players, and bans no account", () => {
    const players = seededPlayers(200)
    assert.strictEqual(players.filter(({ email }) => email !== undefined).length, 8)
    const bans = players.flatMap(({ ban }) => ban ?? [])
    assert.strictEqual(bans.length, 8)
    assert.strictEqual(bans.filter(({ appeal }) => appeal !== undefined).length, 4)
    assert.strictEqual(bans.filter(({ decision }) => decision !== undefined).length, 2)
    assert.isEmpty(players.filter(({ ban, email }) => ban !== undefined && email !== undefined))
  })

  it("spreads values like a leaderboard: the best tenth is far above the middle", () => {
    const stat = { key: "wins", aggregation: "sum" } as const
    const values = seededPlayers(200).map(({ skill }) => statValue(stat, skill))
    values.sort((a, b) => b - a)
    assert.isAbove(values[20] ?? 0, 3 * (values[100] ?? 0))
    assert.strictEqual(statValue({ ...stat, maxPerSubmit: 10 }, 1), 10)
    const laps = { key: "lap", aggregation: "min" } as const
    assert.isBelow(statValue(laps, 0.9), statValue(laps, 0.1))
  })
})

const setUp = Effect.gen(function* () {
  const { publishableKey, secretKey, url } = yield* TestApp
  const development = { url, publishableKey, secretKey }
  const folder = yield* makeFolder({
    SVC_URL: url,
    SVC_SECRET_KEY: secretKey,
    SVC_PUBLISHABLE_KEY: publishableKey
  })
  return { development, folder, headers: { "x-svc-key": secretKey } }
})

/** How many players of the environment have this name. */
const playersNamed = Effect.fnUntraced(function* (
  { secretKey, url }: { readonly secretKey: string; readonly url: string },
  name: string
) {
  const params = { name: "players_search", arguments: { q: name } }
  const { body } = yield* request(`${url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-svc-key": secretKey },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })
  })
  const players = at(body, "result", "structuredContent", "players")
  if (!Array.isArray(players)) return assert.fail(`no players: ${JSON.stringify(body)}`)
  return players.filter((player) => at(player, "displayName") === name).length
})

const Service = TestApp.layerWith().pipe(Layer.provide(DatabaseLive))

layer(Service)("svc seed", (it) => {
  it.effect("fills an environment, and a second run adds nobody", () =>
    Effect.gen(function* () {
      const { development, folder, headers } = yield* setUp
      yield* configure(development, {
        features: { emailLogin: true, saves: true, stats: true },
        stats: [{ key: "wins" }]
      })
      const first = yield* folder.svc("seed --players 8 --json")
      assert.strictEqual(first.code, 0, first.stderr)
      const saves = seededPlayers(8).flatMap((player) => player.saves).length
      assert.deepStrictEqual(JSON.parse(first.stdout), {
        created: 8,
        existing: 0,
        accounts: 1,
        saves,
        stats: 8,
        bans: 1,
        appeals: 1,
        rooms: 0,
        skipped: {}
      })
      const { body } = yield* request(`${development.url}/v1/admin/appeals`, { headers })
      const banned = seededPlayers(8)[7]
      assert.strictEqual(at(body, "appeals", 0, "player", "displayName"), banned?.name)
      assert.strictEqual(at(body, "appeals", 0, "message"), banned?.ban?.appeal)
      const second = yield* folder.svc("seed --players 9")
      assert.strictEqual(second.code, 0, second.stderr)
      assert.match(second.stdout, /: 1 players created, 8 were there\./)
    })
  )

  it.effect("lets bots play in three rooms, and deletes them", () =>
    Effect.gen(function* () {
      const { development, folder } = yield* setUp
      yield* configure(development, { features: { multiplayer: true } })
      const run = yield* folder.svc("seed --players 1 --play 2")
      assert.strictEqual(run.code, 0, run.stderr)
      assert.match(run.stderr, /Bots play in 3 rooms \(\w{6}, \w{6}, \w{6}\) for 2 seconds/)
      assert.match(run.stdout, /3 rooms were played; their bots are deleted/)
      assert.strictEqual(yield* playersNamed(development, seededPlayers(1)[0]?.name ?? ""), 1)
      for (const name of ["Bot Ada", "Bot Ken"]) {
        assert.strictEqual(yield* playersNamed(development, name), 0)
      }
    })
  )

  it.effect("seeds only features that are on, and says how to turn on the others", () =>
    Effect.gen(function* () {
      const { development, folder, headers } = yield* setUp
      yield* configure(development, { features: { stats: true } })
      const run = yield* folder.svc("seed --players 1")
      assert.strictEqual(run.code, 0, run.stderr)
      assert.match(run.stdout, /no saves: features\.saves is off: svc feature on saves/)
      assert.match(run.stdout, /no stats: .*svc seed --define-stats/)
      const noRooms = yield* folder.svc("seed --players 1 --play 2")
      assert.strictEqual(noRooms.code, 2)
      assert.match(noRooms.stderr, /features\.multiplayer is off/)
      const defined = yield* folder.svc("seed --players 1 --define-stats")
      assert.strictEqual(defined.code, 0, defined.stderr)
      const { body } = yield* request(`${development.url}/v1/config`, { headers })
      assert.strictEqual(at(body, "stats", 0, "key"), "wins")
    })
  )

  it.effect("completes svc seed although the email of an account is taken", () =>
    Effect.gen(function* () {
      const { development, folder } = yield* setUp
      yield* configure(development, { features: { emailLogin: true } })
      const players = seededPlayers(29)
      const { email } = players[28] ?? assert.fail("no account")
      const signedUp = yield* request(`${development.url}/v1/auth/email/signup`, {
        headers: { "x-svc-key": development.publishableKey },
        body: { email, password: "a long password", displayName: "Renamed" }
      })
      assert.strictEqual(signedUp.status, 200)
      const run = yield* folder.svc("seed --players 29")
      assert.strictEqual(run.code, 0, run.stderr)
      assert.strictEqual(yield* playersNamed(development, players[28]?.name ?? ""), 1)
    })
  )

  it.effect("refuses to seed production, also when only the key names it", () =>
    Effect.gen(function* () {
      const { folder } = yield* setUp
      const { production } = yield* TestApp
      const keys = {
        SVC_SECRET_KEY: production.secretKey,
        SVC_PUBLISHABLE_KEY: production.publishableKey
      }
      for (const [args, env] of [
        ["seed --players 1 --env production", {}],
        ["seed --players 1", keys]
      ] as const) {
        const refused = yield* folder.svc(args, { env })
        assert.strictEqual(refused.code, 2, refused.stderr)
        assert.match(refused.stderr, /development environments only: this one is production/)
      }
      assert.strictEqual(yield* playersNamed(production, seededPlayers(1)[0]?.name ?? ""), 0)
    })
  )

  it.effect("refuses keys of two environments, and leaves no player in either", () =>
    Effect.gen(function* () {
      const { folder } = yield* setUp
      const { production } = yield* TestApp
      const env = { SVC_PUBLISHABLE_KEY: production.publishableKey }
      const refused = yield* folder.svc("seed --players 40", { env })
      assert.strictEqual(refused.code, 3, refused.stderr)
      assert.match(refused.stderr, /SVC_PUBLISHABLE_KEY opens production of demo, not development/)
      for (const { name } of seededPlayers(40)) {
        assert.strictEqual(yield* playersNamed(production, name), 0)
      }
    })
  )

  it.effect("says what to do without a publishable key, and without a service", () =>
    Effect.gen(function* () {
      const { secretKey, url } = yield* TestApp
      const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: secretKey })
      const keyless = yield* folder.svc("seed")
      assert.strictEqual(keyless.code, 3)
      assert.match(keyless.stderr, /SVC_PUBLISHABLE_KEY=pk_/)
      const lost = yield* folder.svc("seed", { env: { SVC_URL: "http://127.0.0.1:9" } })
      assert.strictEqual(lost.code, 4)
      assert.match(lost.stderr, /npm start starts one/)
      assert.strictEqual((yield* folder.svc("seed --players 0")).code, 2)
    })
  )
})

layer(TestApp.layerWith({ SVC_THROTTLES: "on" }).pipe(Layer.provide(DatabaseLive)))(
  "svc seed with throttles",
  (it) => {
    it.effect(
      "says that svc seed waits for a rate limit of the service, and completes it after the wait",
      () =>
        Effect.gen(function* () {
          const { development, folder } = yield* setUp
          yield* configure(development, {})
          const said = yield* Deferred.make<void>()
          const onError = (stderr: string) => {
            if (stderr.includes("30 guests a minute")) Deferred.doneUnsafe(said, Effect.void)
          }
          // Time of the service stands still, so the limit holds until the test lets a minute pass.
          const run = yield* Effect.forkChild(folder.svc("seed --players 32", { onError }))
          yield* Deferred.await(said)
          yield* TestClock.adjust("1 minute")
          const { code, stderr, stdout } = yield* Fiber.join(run)
          assert.strictEqual(code, 0, stderr)
          assert.match(stdout, /: 32 players created/)
        })
    )
  }
)
