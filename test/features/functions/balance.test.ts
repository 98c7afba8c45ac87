/** Functions with billing on: credit to enable them, suspension for what is owed, and metering. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { makeBalanceCheck } from "#server/features/functions/balance"
import { FunctionsUsage } from "#server/features/functions/control-plane"
import { Ledger } from "#server/features/money/ledger"
import { creditFrom } from "#server/features/money/postings"
import { UsageReports } from "#server/features/money/usage"
import { Meter } from "#server/platform/meter"
import { FunctionsRepository } from "#sql/functions/settings"
import { at } from "#testing/players"
import { call, enable } from "../../support/function-calls.ts"
import {
  addressOfNode,
  coreOfNode,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { codeOf } from "../../support/moderation-calls.ts"
import { MovableClock } from "../../support/movable-clock.ts"

const settings = {
  SVC_BILLING: "on",
  SVC_PRICES: JSON.stringify({ functionRequests: { microUsd: 10_000, per: 1 } })
}

const App = nodeWith(settings).pipe(
  Layer.provideMerge(UsageReports.layer),
  Layer.provideMerge(coreOfNode(settings)),
  Layer.provideMerge(MovableClock.layerAt("2027-02-20T00:00:00Z")),
  Layer.provideMerge(SharedDatabase.layer)
)

const setTime = (iso: string) => Effect.flatMap(MovableClock, (clock) => clock.setTime(iso))

layer(App, { timeout: "60 seconds", excludeTestServices: true })("functions with billing", (it) => {
  it.effect(
    "meters functions against credit, and stops them after 72 hours owed until a top-up",
    () =>
      Effect.gen(function* () {
        const { developerId } = yield* makeDeveloper
        const { production } = yield* makeTenantsOf(developerId)
        const { environmentId } = production
        const target = { url: yield* addressOfNode, ...production }
        const check = yield* makeBalanceCheck
        const ledger = yield* Ledger
        const topUp = (cents: bigint, source: string) =>
          ledger.post({
            developerId,
            kind: "topup",
            source,
            description: "Test",
            movement: creditFrom("provider", cents)
          })
        const refused = yield* call(target, "POST", "/enable", {})
        assert.deepStrictEqual([refused.status, codeOf(refused)], [402, "prepaid_required"])
        yield* topUp(1n, `test:${developerId}:1`)
        yield* enable(target)

        const usage = yield* FunctionsUsage
        yield* usage.add(environmentId, { requests: 10, cpuMillis: 70, bytes: 5 })
        yield* (yield* Meter).flush
        const sql = yield* SqlClient.SqlClient
        const rows = yield* sql`
        select component, sum(quantity)::int as quantity from usage_counters
        where environment_id = ${environmentId} group by component order by component`
        assert.deepStrictEqual(
          rows.map((row) => [row["component"], row["quantity"]]),
          [
            ["functionCpuMillis", 70],
            ["functionRequests", 10]
          ]
        )

        yield* setTime("2027-03-01T01:00:00Z")
        yield* (yield* UsageReports).run(yield* DateTime.now)
        yield* check
        const reason = Effect.map(
          Effect.flatMap(FunctionsRepository, (repository) => repository.find(environmentId)),
          ({ suspendedReason }) => suspendedReason
        )
        assert.isNull(yield* reason)
        yield* setTime("2027-03-04T01:00:00Z")
        yield* check
        assert.strictEqual(yield* reason, "balance")
        const shown = yield* call(target, "GET")
        assert.deepStrictEqual(
          [at(shown.body, "suspended"), at(shown.body, "suspendedReason")],
          [true, "balance"]
        )
        yield* topUp(1000n, `test:${developerId}:2`)
        yield* check
        assert.isNull(yield* reason)

        const repository = yield* FunctionsRepository
        yield* repository.setSuspended({ environmentId, reason: "abuse" })
        yield* check
        assert.strictEqual(yield* reason, "abuse")
      })
  )
})
