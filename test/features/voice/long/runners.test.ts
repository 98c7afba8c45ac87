/** Browser tabs in one call on two runners, when the runner with the call stops or is killed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import type { Page } from "playwright-core"
import { poolLayer } from "#sql/database"
import { TestDatabase } from "#testing/app"
import { startCluster } from "#testing/runners"
import { Chromium, installed, needsChromium, newVisitor } from "../../../support/client/chromium.ts"
import { DatabaseLive } from "../../../support/service.ts"

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

/** A tab that has joined the call of the development page. */
const openTab = Effect.fnUntraced(function* (url: string) {
  const visitor = yield* newVisitor()
  const page = yield* ask(() => visitor.newPage())
  page.setDefaultTimeout(60_000)
  yield* ask(() => page.goto(`${url}/dev/voice`))
  yield* ask(() => page.selectOption("[name=mode]", "sfu"))
  yield* ask(() => page.getByRole("button", { name: "Join" }).click())
  yield* ask(() => page.waitForSelector("#members li"))
  return page
})

/** Waits until a tab hears this many others, and no one else is in the call. */
const hears = (page: Page, others: number) =>
  ask(() =>
    page.waitForFunction(
      (others) =>
        document.querySelectorAll("li").length === others + 1 &&
        document.querySelectorAll("li.speaking").length === others,
      others
    )
  )

describe(`a call of browser tabs on two runners${needsChromium}`, () => {
  for (const end of ["stop", "kill"] as const) {
    it.live.skipIf(!installed)(
      `continues a call for the tabs of the other runner after the ${end} of the call's own`,
      () =>
        Effect.gen(function* () {
          const { url: databaseUrl } = yield* TestDatabase
          const env = { SVC_VOICE_UDP_PORTS: "0" }
          const { runners } = yield* startCluster({ databaseUrl, size: 2, env })
          const tabs = yield* Effect.forEach([...runners, ...runners], (runner) =>
            Effect.map(openTab(runner.url), (page) => ({ runner, page }))
          )
          for (const { page } of tabs) yield* hears(page, 3)
          const node = yield* Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const [row] = yield* sql`select node from channels`
            return row?.["node"]
          }).pipe(Effect.provide(poolLayer({ url: Redacted.make(databaseUrl), connections: 1 })))
          const owner = runners.find((runner) => runner.node === node)
          if (owner === undefined) return assert.fail("no runner has the call")
          yield* Effect.forkScoped(owner[end])
          for (const { page, runner } of tabs) if (runner !== owner) yield* hears(page, 1)
        }).pipe(Effect.provide(Chromium.layer), Effect.provide(DatabaseLive), Effect.scoped)
    )
  }
})
