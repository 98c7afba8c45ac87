/** Visits of share links, and their statistics. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { ShareVisitRepository } from "#sql/share/visits"
import { at, guest, request, type TestTarget } from "#testing/players"
import { codeOf, operate, play } from "../../support/moderation-calls.ts"
import { appOf, share, ShareNode } from "../../support/share-links.ts"

const visitAs = (target: TestTarget, userAgent: string, shareId: string, landed = true) =>
  Effect.map(
    request(`${target.url}/v1/share/visits`, {
      headers: { "x-svc-key": target.publishableKey, "user-agent": userAgent },
      body: { shareId, landed }
    }),
    ({ body }) => at(body, "counted")
  )

const statsOf = (target: TestTarget, query = "") =>
  Effect.map(operate(target, "GET", `share/stats${query}`), ({ body }) => body)

layer(ShareNode)("a visit", (it) => {
  it.effect("counts a visit once for each visitor and link, however often it is reported", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const { id } = yield* share(target, ada, { kind: "plain" })
      const other = yield* share(target, ada, { kind: "plain" })
      const counted = yield* Effect.forEach(
        Array.from({ length: 200 }),
        () => visitAs(target, "one browser", id),
        { concurrency: 20 }
      )
      assert.strictEqual(counted.filter((it) => it === true).length, 1)
      assert.isTrue(yield* visitAs(target, "another browser", id))
      assert.isTrue(yield* visitAs(target, "one browser", other.id))
      assert.isTrue(yield* visitAs(target, "one browser", id, false))
      const body = yield* statsOf(target)
      assert.deepStrictEqual(at(body, "totals"), { visits: 3, newPlayers: 0, plays: 1 })
      assert.deepStrictEqual(at(yield* statsOf(target, `?shareId=${id}`), "totals"), {
        visits: 2,
        newPlayers: 0,
        plays: 1
      })
    })
  )

  it.effect("counts 30 visitors of one address, link and day, and keeps no rows of others", () =>
    Effect.gen(function* () {
      const { target, tenant } = yield* appOf()
      const sql = yield* SqlClient.SqlClient
      const ada = yield* guest(target, "Ada")
      const { id } = yield* share(target, ada, { kind: "plain" })
      const counted = yield* Effect.forEach(
        Array.from({ length: 100 }, (_, index) => index),
        (index) => visitAs(target, `made up browser ${index}`, id),
        { concurrency: 4 }
      )
      assert.strictEqual(counted.filter((it) => it === true).length, 30)
      const [rows] = yield* sql`
        select count(*)::int as count from share_visitors
        where environment_id = ${tenant.environmentId}`
      assert.isAtMost(Number(rows?.["count"]), 33)
      const other = yield* share(target, ada, { kind: "plain" })
      assert.isTrue(yield* visitAs(target, "made up browser 99", other.id))
    })
  )

  it.effect("counts a player once on all devices, and a new account once as a new player", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      yield* TestClock.adjust("1 second")
      const { id } = yield* share(target, ada, { kind: "plain" })
      const bob = yield* guest(target, "Bob")
      yield* play(target, ada, "POST", "share/visits", { shareId: id, landed: true })
      assert.deepInclude(at(yield* statsOf(target), "totals"), { visits: 1, newPlayers: 0 })
      const report = (landed: boolean) =>
        Effect.map(
          play(target, bob, "POST", "share/visits", { shareId: id, landed }),
          ({ body }) => body.counted
        )
      assert.deepStrictEqual(yield* Effect.all([report(true), report(true)]), [true, false])
      assert.deepStrictEqual(yield* Effect.all([report(false), report(false)]), [true, false])
      assert.deepStrictEqual(at(yield* statsOf(target), "totals"), {
        visits: 2,
        newPlayers: 1,
        plays: 1
      })
    })
  )

  it.effect("counts a visit again the next day, and by then keeps no trace of the visitor", () =>
    Effect.gen(function* () {
      const { tenant } = yield* appOf()
      const visits = yield* ShareVisitRepository
      const sql = yield* SqlClient.SqlClient
      const { environmentId } = tenant
      const visitor = new Uint8Array([1, 2, 3])
      const countOn = (day: string) =>
        visits.count({
          environmentId,
          linkId: "0123456789",
          day,
          event: "landed",
          visitor,
          address: visitor,
          arrival: null
        })
      const salt = yield* visits.salt("2026-03-01", new Uint8Array([9]))
      assert.deepStrictEqual(yield* visits.salt("2026-03-01", new Uint8Array([8])), salt)
      assert.deepStrictEqual(
        yield* Effect.all([countOn("2026-03-01"), countOn("2026-03-01"), countOn("2026-03-02")]),
        [true, false, true]
      )
      yield* visits.sweep("2026-03-02")
      const left = yield* sql`
        select day::text from share_visitors where environment_id = ${environmentId}
        union all select day::text from share_addresses where environment_id = ${environmentId}
        union all select day::text from share_salts where day = '2026-03-01'`
      assert.deepStrictEqual(left, [{ day: "2026-03-02" }, { day: "2026-03-02" }])
      const range = { environmentId, from: "2026-03-01", to: "2026-03-02", linkId: null }
      const days = yield* visits.days(range)
      assert.deepStrictEqual(
        days.map((day) => day.visits),
        [1, 1]
      )
    })
  )
})

layer(ShareNode)("share statistics", (it) => {
  it.effect("lists labelled share links and every day of the range in share statistics", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const made = yield* operate(target, "POST", "share/links", { label: "Spring sale" })
      assert.strictEqual(made.status, 201, JSON.stringify(made.body))
      const id = String(made.body.link.id)
      assert.strictEqual(made.body.query, `ks=${id}`)
      assert.strictEqual(made.body.link.label, "Spring sale")
      yield* visitAs(target, "a browser", id)
      const body = yield* statsOf(target)
      assert.deepStrictEqual(at(body, "links"), [
        { id, label: "Spring sale", kind: "plain", visits: 1, newPlayers: 0, plays: 0 }
      ])
      const days = at(body, "days")
      assert.isArray(days)
      assert.strictEqual(at(days, "length"), 30)
      assert.strictEqual(at(days, 29, "date"), at(body, "to"))
      assert.strictEqual(at(days, 29, "visits"), 1)
      assert.strictEqual(at(days, 0, "date"), at(body, "from"))
    })
  )

  it.effect("refuses share statistics of a range that is reversed, too long or of no days", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      for (const query of [
        "?from=2026-02-01&to=2026-01-01",
        "?from=2025-01-01&to=2026-01-02",
        "?from=2026-02-30",
        "?from=yesterday",
        "?to=0001-01-05",
        "?from=9999-12-31&to=9999-12-31",
        "?limit=0",
        "?shareId=x"
      ]) {
        const answer = yield* operate(target, "GET", `share/stats${query}`)
        assert.strictEqual(codeOf(answer), "invalid_request", query)
      }
      const whole = yield* operate(target, "GET", "share/stats?from=2024-01-01&to=2024-12-31")
      assert.strictEqual(whole.body.days.length, 366)
    })
  )
})
