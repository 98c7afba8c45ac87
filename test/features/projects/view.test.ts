/** The dashboard's reads of an environment: players and overview. */
import { assert, layer } from "@effect/vitest"
import { Context, DateTime, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { newId, PlayerId } from "#rpc/ids"
import { Usage } from "#server/platform/usage"
import { noteSeen } from "#server/gateway/seen-players"
import { at, guest, request, type TestPlayer, type TestTarget } from "#testing/players"
import { ask, codeOf } from "../../support/developer-requests.ts"
import {
  buildAnother,
  addressOfNode,
  configure,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const developer = yield* makeDeveloper
  const { development, production, projectId } = yield* makeTenantsOf(developer.developerId)
  const url = yield* addressOfNode
  const path = `/v1/projects/${projectId as string}/environments` as const
  const seeIn =
    (environment: string) =>
    <const P extends string>(what: P) =>
      ask(developer, "GET", `${path}/${environment}/${what}`)
  return {
    developer,
    development,
    target: { url, ...development },
    see: seeIn("development"),
    seeElsewhere: seeIn("production"),
    production: { url, ...production }
  }
})

const namesOf = (body: unknown) => {
  const players = at(body, "players")
  return Array.isArray(players) ? players.map((player) => player.displayName) : players
}

layer(Node)("players of an environment", (it) => {
  it.effect("lists players newest first in pages without duplicates", () =>
    Effect.gen(function* () {
      const { production, see, target } = yield* setUp
      for (const name of ["a", "b", "c", "d", "e"]) {
        yield* TestClock.adjust(1)
        yield* guest(target, name)
      }
      yield* guest(production, "elsewhere")
      const pages: Array<unknown> = []
      let cursor: unknown = undefined
      do {
        const { body }: { body: unknown } = yield* see(
          `players?limit=2${cursor === undefined ? "" : `&cursor=${String(cursor)}`}`
        )
        pages.push(namesOf(body))
        cursor = at(body, "nextCursor")
      } while (cursor !== null)
      assert.deepStrictEqual(pages, [["e", "d"], ["c", "b"], ["a"]])
    })
  )

  it.effect("finds players by id or name prefix only", () =>
    Effect.gen(function* () {
      const { production, see, seeElsewhere, target } = yield* setUp
      const ada = yield* guest(target, "Ada 100%")
      yield* TestClock.adjust(1)
      yield* guest(target, "adam_b")
      yield* TestClock.adjust(1)
      yield* guest(target, "Zoë")
      const foreign = yield* guest(production, "Ada too")
      const found = (q: string) =>
        Effect.map(see(`players?q=${encodeURIComponent(q)}`), ({ body }) => namesOf(body))
      assert.deepStrictEqual(yield* found("ADA"), ["Ada 100%", "adam_b"])
      assert.deepStrictEqual(yield* found("ada 1"), ["Ada 100%"])
      assert.deepStrictEqual(yield* found("ada 100%"), ["Ada 100%"])
      assert.deepStrictEqual(yield* found("adam_"), ["adam_b"])
      assert.deepStrictEqual(yield* found("zoë"), ["Zoë"])
      assert.deepStrictEqual(yield* found(ada.id), ["Ada 100%"])
      for (const q of ["%", "_", "dam", "' or 1=1 --", "ada@example.com", "\\", foreign.id]) {
        assert.deepStrictEqual(yield* found(q), [], q)
      }
      assert.lengthOf(Object(yield* found(" ")), 3)
      assert.deepStrictEqual(namesOf((yield* seeElsewhere("players")).body), ["Ada too"])
    })
  )

  it.effect("finds players by exact email, which the detail shows", () =>
    Effect.gen(function* () {
      const { development, production, see, seeElsewhere, target } = yield* setUp
      for (const tenant of [development, production]) {
        yield* configure(tenant, { features: { emailLogin: true } })
      }
      const sql = yield* SqlClient.SqlClient
      const signUp = ({ publishableKey, url }: TestTarget, email: string, displayName: string) =>
        request(`${url}/v1/auth/email/signup`, {
          headers: { "x-svc-key": publishableKey },
          body: { email, password: "correct horse battery", displayName }
        })
      const ada = yield* signUp(target, "Ada@example.com", "Ada")
      yield* signUp(production, "ada@example.com", "Ada elsewhere")
      yield* signUp(target, "bea@example.com", "ada@example")
      yield* guest(target, "ada@example.com is a name")
      const found = (q: string, where = see) =>
        Effect.map(where(`players?q=${encodeURIComponent(q)}`), ({ body }) => namesOf(body))
      assert.deepStrictEqual(yield* found(" ADA@example.com "), ["Ada"])
      assert.deepStrictEqual(yield* found("ada@example.com", seeElsewhere), ["Ada elsewhere"])
      assert.deepStrictEqual(yield* found("ada@example.co"), ["ada@example.com is a name"])
      assert.deepStrictEqual(yield* found("bea@example.co"), [])
      const id = at(ada.body, "player", "id")
      const emailOf = Effect.map(see(`players/${String(id)}`), ({ body }) => [
        body.player.email,
        body.player.emailVerified
      ])
      assert.deepStrictEqual(yield* emailOf, ["ada@example.com", false])
      yield* sql`update identities set email_verified = true where player_id = ${String(id)}`
      assert.deepStrictEqual(yield* emailOf, ["ada@example.com", true])
    })
  )

  it.effect("orders players by name in a name search, in pages without duplicates", () =>
    Effect.gen(function* () {
      const { see, target } = yield* setUp
      for (const name of ["bea", "Bob", "bob", "Ben", "bob ", "Ada", "B"]) {
        yield* TestClock.adjust(1)
        yield* guest(target, name)
      }
      const found: Array<unknown> = []
      let cursor = ""
      do {
        const { body } = yield* see(`players?q=b&limit=2${cursor}`)
        found.push(namesOf(body))
        cursor = body.nextCursor === null ? "" : `&cursor=${String(body.nextCursor)}`
      } while (cursor !== "")
      assert.deepStrictEqual(found, [
        ["B", "bea"],
        ["Ben", "Bob"],
        ["bob", "bob"]
      ])
      const broken = yield* see(`players?q=b&cursor=pl_00000000000000000000000000.AP__`)
      assert.strictEqual(broken.status, 200)
    })
  )

  it.effect(
    "shows a part of the players, in an order, with their number",
    () =>
      Effect.gen(function* () {
        const { see, target } = yield* setUp
        const sql = yield* SqlClient.SqlClient
        const [ada, , cleo] = yield* Effect.forEach(["Ada", "bob", "Cleo", "ann"], (name) =>
          Effect.andThen(TestClock.adjust(1), guest(target, name))
        )
        yield* sql`update players set is_guest = false where id = ${cleo?.id ?? ""}`
        const usage = yield* Usage
        yield* usage.flush
        yield* TestClock.adjust("1 day")
        yield* usage.playerSeen(target.environmentId, PlayerId.make(ada?.id ?? ""))
        yield* usage.flush
        const moderate = (id: string | undefined, act: string, body: object) =>
          request(`${target.url}/v1/admin/players/${id}/${act}`, {
            headers: { "x-svc-key": target.secretKey },
            body
          })
        yield* moderate(ada?.id, "ban", { reason: "x" })
        yield* moderate(cleo?.id, "ban", { reason: "x" })
        yield* moderate(cleo?.id, "unban", {})
        const shown = (query: string) =>
          Effect.map(see(`players?${query}`), ({ body }) => [namesOf(body), body.total])
        assert.deepStrictEqual(yield* shown(""), [["ann", "Cleo", "bob", "Ada"], 4])
        assert.deepStrictEqual(yield* shown("sort=oldest&limit=3"), [["Ada", "bob", "Cleo"], 4])
        assert.deepStrictEqual(yield* shown("sort=name"), [["Ada", "ann", "bob", "Cleo"], 4])
        assert.deepStrictEqual(yield* shown("filter=guests"), [["ann", "bob", "Ada"], 3])
        assert.deepStrictEqual(yield* shown("filter=accounts"), [["Cleo"], 1])
        assert.deepStrictEqual(yield* shown("filter=banned"), [["Ada"], 1])
        assert.deepStrictEqual(yield* shown("filter=active"), [["Ada"], 1])
        assert.deepStrictEqual(yield* shown("filter=guests&q=a&sort=newest"), [["Ada", "ann"], 2])
        assert.deepStrictEqual(yield* shown(`filter=accounts&q=${ada?.id}`), [[], 0])
        const { body: first } = yield* see("players?sort=name&limit=3")
        const cursor = String(first.nextCursor)
        assert.deepStrictEqual(yield* shown(`sort=name&limit=3&cursor=${cursor}`), [["Cleo"], null])
        const { body: oldest } = yield* see("players?sort=oldest&limit=2")
        const next = `sort=oldest&limit=2&cursor=${String(oldest.nextCursor)}`
        assert.deepStrictEqual(yield* shown(next), [["Cleo", "ann"], null])
      }),
    { tags: "long" }
  )

  it.effect("rejects invalid searches", () =>
    Effect.gen(function* () {
      const { see } = yield* setUp
      for (const query of [
        "limit=0",
        "limit=101",
        "limit=x",
        "cursor=x",
        "cursor=pl_0.x",
        "filter=nobody",
        "sort=random",
        "q=%00"
      ]) {
        assert.strictEqual(codeOf(yield* see(`players?${query}`)), "invalid_request", query)
      }
      assert.strictEqual(codeOf(yield* see(`players?q=${"a".repeat(255)}`)), "invalid_request")
    })
  )

  it.effect("shows a player with saves, stats and sessions", () =>
    Effect.gen(function* () {
      const { development, production, see, target } = yield* setUp
      const stats = [{ key: "score", title: "Score" }]
      yield* configure(development, { features: { saves: true, stats: true }, stats })
      const { accessToken, id } = yield* guest(target, "Ada")
      const headers = {
        "x-svc-key": target.publishableKey,
        authorization: `Bearer ${accessToken}`
      }
      const { url } = target
      yield* request(`${url}/v1/saves/slot`, { method: "PUT", headers, body: { data: [1] } })
      yield* request(`${url}/v1/stats`, { headers, body: { stats: { score: 5 } } })
      const { body } = yield* see(`players/${id}`)
      const { age, createdAt, lastSeenAt, sessions, saves, ...player } = Object(body.player)
      assert.strictEqual(age.ageBand, "adult")
      assert.strictEqual(createdAt, lastSeenAt)
      assert.deepStrictEqual(player, {
        id,
        displayName: "Ada",
        isGuest: true,
        banned: false,
        identities: [{ provider: "guest" }],
        email: null,
        emailVerified: false,
        bannedAt: null,
        banReason: null,
        banExpiresAt: null,
        sanctions: [],
        stats: { score: 5 }
      })
      assert.strictEqual(saves[0]?.key, "slot")
      assert.strictEqual(saves[0]?.size, 3)
      assert.lengthOf(Object(sessions), 1)
      assert.strictEqual(sessions[0]?.lastUsedAt, lastSeenAt)

      const foreign = yield* guest(production)
      for (const other of [foreign.id, "pl_00000000000000000000000000", "x", "%00"]) {
        const answer = yield* see(`players/${other}`)
        assert.strictEqual(answer.status, 404)
        assert.strictEqual(codeOf(answer), "player_not_found", other)
      }
    })
  )
})

layer(Node)("when a player was last seen", (it) => {
  it.effect("updates when a player was last seen with requests, at most once in five minutes", () =>
    Effect.gen(function* () {
      const { see, target } = yield* setUp
      const usage = yield* Usage
      const ada = yield* guest(target, "Ada")
      const lastSeen = Effect.gen(function* () {
        yield* usage.flush
        return (yield* see(`players/${ada.id}`)).body.player.lastSeenAt
      })
      const play = request(`${target.url}/v1/players/me`, {
        headers: {
          "x-svc-key": target.publishableKey,
          authorization: `Bearer ${ada.accessToken}`
        }
      })
      assert.strictEqual(yield* lastSeen, "1970-01-01T00:00:00.000Z")
      yield* TestClock.adjust("4 minutes")
      yield* play
      assert.strictEqual(yield* lastSeen, "1970-01-01T00:00:00.000Z")
      yield* TestClock.adjust("1 minute")
      yield* play
      assert.strictEqual(yield* lastSeen, "1970-01-01T00:05:00.000Z")
    })
  )

  it.effect("updates when a player was last seen while a connection of the player is open", () =>
    Effect.gen(function* () {
      const { development, see, target } = yield* setUp
      const usage = yield* Usage
      const { environmentId } = development
      const { id } = yield* guest(target, "Ada")
      const connected = [{ environmentId, playerId: PlayerId.make(id) }]
      yield* Effect.forkScoped(noteSeen(() => connected))
      const before = yield* DateTime.now
      yield* Effect.yieldNow
      yield* TestClock.adjust("1 hour")
      yield* usage.flush
      const { body } = yield* see(`players/${id}`)
      const lastSeen = DateTime.makeUnsafe(String(body.player.lastSeenAt))
      const minutes = (DateTime.toEpochMillis(lastSeen) - DateTime.toEpochMillis(before)) / 60_000
      assert.isAtLeast(minutes, 54)
    })
  )
})

layer(Node)("the overview of an environment", (it) => {
  it.effect("shows the bytes of all saves and their limit", () =>
    Effect.gen(function* () {
      const { development, see, seeElsewhere, target } = yield* setUp
      yield* configure(development, { features: { saves: true } })
      for (const data of [[1], "x"]) {
        const { accessToken } = yield* guest(target)
        const headers = {
          "x-svc-key": target.publishableKey,
          authorization: `Bearer ${accessToken}`
        }
        yield* request(`${target.url}/v1/saves/slot`, { method: "PUT", headers, body: { data } })
      }
      const storageOf = (read: typeof see) =>
        Effect.map(read("overview"), ({ body }) => body.storage)
      const limitBytes = 53_687_091_200
      assert.deepStrictEqual(yield* storageOf(see), { savesBytes: 6, limitBytes })
      assert.deepStrictEqual(yield* storageOf(seeElsewhere), { savesBytes: 0, limitBytes })
    })
  )

  it.effect("counts the other players when one is deleted during the count", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { development, see, target } = yield* setUp
      const usage = yield* Usage
      const { environmentId } = development
      const [ada, bob] = yield* Effect.forEach(["Ada", "Bob"], (name) => guest(target, name))
      for (const player of [ada, bob]) {
        yield* usage.playerSeen(environmentId, PlayerId.make(player?.id ?? ""))
      }
      const waiting = sql`
        select 1 from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like '%player_days%'`
      const gone = yield* Deferred.make<void>()
      const committed = yield* Deferred.make<void>()
      const leaving = sql`delete from players where id = ${ada?.id ?? ""}`.pipe(
        Effect.andThen(Deferred.succeed(gone, undefined)),
        Effect.andThen(Deferred.await(committed)),
        sql.withTransaction
      )
      yield* Effect.forkChild(leaving)
      yield* Deferred.await(gone)
      const counting = yield* Effect.forkChild(Effect.exit(usage.flush))
      yield* waiting.pipe(Effect.repeat({ until: (rows) => rows.length > 0 }))
      yield* Deferred.succeed(committed, undefined)
      assert.isTrue(Exit.isSuccess(yield* Fiber.join(counting)))
      assert.strictEqual((yield* see("overview")).body.dailyActives[13]?.count, 1)
    })
  )

  it.effect(
    "counts each active player once a day, whichever node reports it",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { development, see, target } = yield* setUp
        const here = yield* Usage
        const { environmentId } = development
        const [ada, bob] = yield* Effect.forEach(["Ada", "Bob"], (name) => guest(target, name))
        const idOf = (player: TestPlayer | undefined) => PlayerId.make(player?.id ?? "")
        yield* sql`update players set is_guest = false where id = ${idOf(ada)}`
        yield* here.flush
        yield* TestClock.adjust("1 day")
        // Only now: a node that is up sweeps every second of that day.
        const there = Context.get(yield* buildAnother(nodeWith()), Usage)
        for (const node of [here, there, here]) {
          yield* node.playerSeen(environmentId, idOf(bob))
          yield* node.playerSeen(environmentId, yield* newId.player)
          yield* node.flush
        }
        yield* configure(development, { features: { saves: true } })
        const { body } = yield* see("overview")
        assert.deepStrictEqual(body.players, { total: 2, guests: 1 })
        assert.strictEqual(body.configVersion, 1)
        assert.strictEqual(body.online, 0)
        const days = Object(body.dailyActives)
        assert.lengthOf(days, 14)
        const counts = [11, 12, 13].map((day) => [at(days, day, "date"), at(days, day, "count")])
        assert.deepStrictEqual(counts, [
          ["1969-12-31", 0],
          ["1970-01-01", 2],
          ["1970-01-02", 1]
        ])
        const kinds = [0, 1].map((key) => at(body, "keys", key, "kind"))
        assert.sameMembers(kinds, ["publishable", "secret"])
        assert.isUndefined(body.keys[2])
      }),
    { tags: "long" }
  )
})
