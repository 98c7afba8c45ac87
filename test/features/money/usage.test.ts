/** Metered usage: what is counted, how a month is charged, and what unpaid usage means. */
import { assert, describe, it as plain, layer } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { Billing } from "#server/features/money/billing"
import { Ledger } from "#server/features/money/ledger"
import { creditFrom } from "#server/features/money/postings"
import { chargeOf, rate } from "#server/features/money/prices"
import { UsageReports } from "#server/features/money/usage"
import { Meter } from "#server/platform/meter"
import { periodOf } from "#server/platform/months"
import { at } from "#testing/players"
import { ask } from "../../support/developer-requests.ts"
import { MovableClock } from "../../support/movable-clock.ts"
import {
  coreOfNode,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"

const prices = JSON.stringify({
  egressBytes: { microUsd: 90_000, per: 1_000_000 },
  connectionSeconds: { microUsd: 5, per: 3600 },
  activePlayers: { microUsd: 3333, per: 1 }
})

const settings = { SVC_BILLING: "on", SVC_PRICES: prices }

const App = nodeWith(settings).pipe(
  Layer.provideMerge(UsageReports.layer),
  Layer.provideMerge(coreOfNode(settings)),
  Layer.provideMerge(MovableClock.layerAt("2026-11-20T12:00:00Z")),
  Layer.provideMerge(SharedDatabase.layer)
)

const makePayer = Effect.gen(function* () {
  const developer = yield* makeDeveloper
  return { ...developer, ...(yield* makeTenantsOf(developer.developerId)) }
})

type Payer = Effect.Success<typeof makePayer>

const read = (payer: Pick<Payer, "headers">, query: string) =>
  Effect.map(ask(payer, "GET", `/v1/money/usage?${query}`), ({ body }) => body)

const quantities = (report: unknown) =>
  Object.fromEntries(
    Array.from(Object(at(report, "components")), (it) => [at(it, "component"), at(it, "quantity")])
  )

const setTime = (iso: string) => Effect.flatMap(MovableClock, (clock) => clock.setTime(iso))

const run = Effect.gen(function* () {
  const reports = yield* UsageReports
  yield* reports.run(yield* DateTime.now)
})

const balances = Effect.fnUntraced(function* ({ developerId }: Payer) {
  const { invite, owed, prepaid } = yield* (yield* Ledger).balances(developerId)
  return { prepaid: Number(prepaid), owed: Number(-owed), invite: Number(invite) }
})

let credits = 0

const credit = Effect.fnUntraced(function* ({ developerId }: Payer, cents: bigint) {
  const source = `test:${developerId}:${++credits}`
  const movement = creditFrom("adjustments", cents)
  const event = { developerId, kind: "adjustment" as const, source, description: "Credit" }
  yield* (yield* Ledger).post({ ...event, movement })
})

/** Repositories whose process dies after so many of their calls, counted over all of them. */
const crashesAfter = (fatal: number) => {
  let calls = 0
  return <A extends object>(service: A): A =>
    new Proxy(service, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== "function") return method
        return (...args: ReadonlyArray<unknown>) =>
          Effect.suspend(() => {
            const run: Effect.Effect<unknown> = Reflect.apply(method, target, args)
            const isDead = ++calls >= fatal
            return isDead ? Effect.andThen(run, Effect.die("crashed")) : run
          })
      }
    })
}

layer(App, { timeout: "120 seconds", excludeTestServices: true })("usage", (it) => {
  it.effect(
    "stores usage of each environment at a flush, and reports the sum and its price to the payer",
    () =>
      Effect.gen(function* () {
        const meter = yield* Meter
        const payer = yield* makePayer
        const { environmentId } = payer.development
        meter.add(environmentId, "egressBytes", 700_000)
        meter.add(environmentId, "egressBytes", 800_000)
        meter.add(payer.production.environmentId, "egressBytes", 500_000)
        meter.add(environmentId, "voiceSeconds", 60)
        // Nobody pays for an environment that does not exist.
        meter.add((yield* makeTenantsOf()).development.environmentId, "egressBytes", 1)
        const sql = yield* SqlClient.SqlClient
        const stored = sql`
        select 1 from usage_counters where environment_id = ${environmentId}`
        assert.lengthOf(yield* stored, 0)
        yield* meter.flush
        assert.lengthOf(yield* stored, 2)
        const report = yield* read(payer, "period=2026-11")
        assert.deepInclude(report, {
          period: "2026-11",
          currency: "usd",
          totalMicroUsd: 180_000,
          carriedMicroUsd: 0,
          chargedCents: 0,
          estimate: true
        })
        assert.deepStrictEqual(at(report, "components"), [
          { component: "egressBytes", quantity: 2_000_000, unit: "bytes", microUsd: 180_000 },
          { component: "voiceSeconds", quantity: 60, unit: "seconds", microUsd: 0 }
        ])
        assert.deepStrictEqual(quantities(yield* read(yield* makePayer, "")), {})
      })
  )

  it.effect("counts usage once when its write is repeated", () =>
    Effect.gen(function* () {
      const payer = yield* makePayer
      const repository = yield* MeteringRepository
      const { environmentId } = payer.production
      const count = { environmentId, component: "functionRequests", quantity: 7n }
      const createdAt = yield* DateTime.now
      const batch = { id: "repeated", createdAt, counts: [{ ...count, period: "2026-11" }] }
      yield* Effect.all([repository.add(batch), repository.add(batch)], { concurrency: 2 })
      yield* repository.add(batch)
      assert.deepStrictEqual(quantities(yield* read(payer, "")), { functionRequests: 7 })
    })
  )

  it.effect("includes active players and stored data, each measured once", () =>
    Effect.gen(function* () {
      const payer = yield* makePayer
      const { environmentId } = payer.production
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into daily_actives (environment_id, day, players) values
          (${environmentId}, '2026-10-31', 50), (${environmentId}, '2026-11-01', 3),
          (${environmentId}, '2026-11-19', 4), (${environmentId}, '2026-12-01', 70)`
      yield* sql`
        insert into blobs (environment_id, sha256, size, stored_at) values
          (${environmentId}, 'a', 3000000, now()), (${environmentId}, 'b', 3000000, null)`
      yield* setTime("2026-11-20T13:00:00Z")
      yield* run
      yield* run
      const stored = quantities(yield* read(payer, "refresh=true"))
      assert.deepInclude(stored, { activePlayers: 7 })
      assert.strictEqual(stored["storageMibHours"], 2)
      yield* sql`delete from daily_actives where environment_id = ${environmentId}`
      assert.deepInclude(quantities(yield* read(payer, "refresh=true")), { activePlayers: 7 })
    })
  )

  it.effect("charges usage an hour after its month, in whole cents, and carries the rest on", () =>
    Effect.gen(function* () {
      yield* setTime("2026-11-30T23:59:59.999Z")
      const meter = yield* Meter
      const payer = yield* makePayer
      const { environmentId } = payer.production
      yield* credit(payer, 20n)
      // 315,000 micro-USD are 31 cents and half a cent.
      meter.add(environmentId, "egressBytes", 3_500_000)
      yield* setTime("2026-12-01T00:00:00.000Z")
      meter.add(environmentId, "egressBytes", 2_000_000)
      yield* meter.flush
      yield* setTime("2026-12-01T00:59:59Z")
      yield* run
      assert.deepInclude(yield* read(payer, "period=2026-11"), { estimate: true, chargedCents: 0 })
      yield* setTime("2026-12-01T01:00:00Z")
      yield* Effect.all([run, run], { concurrency: 2 })
      yield* run
      const closed = yield* read(payer, "period=2026-11")
      assert.deepInclude(closed, { estimate: false, totalMicroUsd: 315_000, chargedCents: 31 })
      assert.deepStrictEqual(yield* balances(payer), { prepaid: 0, owed: 11, invite: 0 })
      // A count that comes too late belongs to the month that is open.
      meter.add(environmentId, "egressBytes", 500_000)
      yield* meter.flush
      assert.deepInclude(yield* read(payer, "period=2026-12"), {
        totalMicroUsd: 225_000,
        carriedMicroUsd: 5000,
        estimate: true
      })
      assert.deepStrictEqual(yield* read(payer, "period=2026-11&refresh=true"), closed)
      yield* setTime("2027-01-01T01:00:00Z")
      yield* run
      // The developer's session has ended by now.
      const { developerId } = payer
      const reports = yield* UsageReports
      const december = yield* reports.read({ developerId, period: "2026-12", refresh: false })
      assert.deepInclude(december, { chargedCents: 23, carriedMicroUsd: 5000 })
      assert.deepStrictEqual(yield* balances(payer), { prepaid: 0, owed: 34, invite: 0 })
    })
  )

  it.effect("pays usage from invite credit first, also when its project is gone", () =>
    Effect.gen(function* () {
      yield* setTime("2027-01-15T00:00:00Z")
      const payer = yield* makePayer
      const ledger = yield* Ledger
      yield* ledger.grantInvite({ developerId: payer.developerId, pending: true })
      const balance = yield* ask(payer, "GET", "/v1/money/prepaid")
      assert.deepStrictEqual(balance.body, {
        balance: 0,
        owed: 0,
        invite: { granted: 0, remaining: 0, pending: 500 }
      })
      yield* ledger.confirmInvite(payer.developerId)
      yield* credit(payer, 100n)
      const meter = yield* Meter
      meter.add(payer.production.environmentId, "egressBytes", 60_000_000)
      yield* meter.flush
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from projects where id = ${payer.projectId}`
      yield* setTime("2027-02-01T01:00:00Z")
      yield* run
      const after = yield* ask(payer, "GET", "/v1/money/prepaid")
      assert.deepStrictEqual(after.body, {
        balance: 60,
        owed: 0,
        invite: { granted: 500, remaining: 0, pending: 0 }
      })
    })
  )

  it.effect(
    "charges a month's usage once when the process dies between any two steps of its close",
    () =>
      Effect.gen(function* () {
        const meter = yield* Meter
        const reports = yield* UsageReports
        const metering = yield* MeteringRepository
        const postings = yield* LedgerRepository
        let hasSurvived = false
        for (let fatal = 1; !hasSurvived; fatal++) {
          const year = 2030 + fatal
          yield* setTime(`${year}-05-20T12:00:00Z`)
          const payer = yield* makePayer
          yield* credit(payer, 20n)
          // 315,000 micro-USD are 31 cents and half a cent.
          meter.add(payer.production.environmentId, "egressBytes", 3_500_000)
          yield* meter.flush
          yield* setTime(`${year}-06-01T01:00:00Z`)
          const now = yield* DateTime.now
          const crashing = crashesAfter(fatal)
          const dying = Layer.fresh(UsageReports.layer).pipe(
            Layer.provide(Layer.fresh(Ledger.layer)),
            Layer.provide([
              Layer.succeed(LedgerRepository, crashing(postings)),
              Layer.succeed(MeteringRepository, crashing(metering))
            ])
          )
          const exit = yield* Effect.exit(
            Effect.flatMap(UsageReports, (it) => it.run(now)).pipe(Effect.provide(dying))
          )
          hasSurvived = Exit.isSuccess(exit)
          const may = () =>
            reports.read({ developerId: payer.developerId, period: `${year}-05`, refresh: false })
          const { owed } = yield* balances(payer)
          const { chargedCents, estimate } = yield* may()
          const state = `after ${fatal} steps`
          assert.deepStrictEqual([owed, chargedCents], estimate ? [0, 0] : [11, 31], state)
          yield* run
          yield* run
          assert.deepInclude(yield* may(), { estimate: false, chargedCents: 31 }, state)
          const after = { prepaid: 0, owed: 11, invite: 0 }
          assert.deepStrictEqual(yield* balances(payer), after, state)
        }
      }),
    { tags: ["long"] }
  )

  it.effect(
    "requires credit for Functions, and suspends a project after 72 hours owed until a top-up",
    () =>
      Effect.gen(function* () {
        yield* setTime("2027-02-20T00:00:00Z")
        const billing = yield* Billing
        const payer = yield* makePayer
        const { projectId } = payer
        const isRefused = Effect.map(Effect.exit(billing.requirePrepaid(projectId)), Exit.isFailure)
        assert.isTrue(yield* isRefused)
        yield* credit(payer, 1n)
        assert.isFalse(yield* isRefused)
        const meter = yield* Meter
        meter.add(payer.production.environmentId, "egressBytes", 1_000_000)
        yield* meter.flush
        yield* setTime("2027-03-01T01:00:00Z")
        yield* run
        assert.isTrue(yield* isRefused)
        yield* setTime("2027-03-04T00:59:59Z")
        assert.isFalse(yield* billing.isSuspendedForBalance(projectId))
        yield* setTime("2027-03-04T01:00:00Z")
        assert.isTrue(yield* billing.isSuspendedForBalance(projectId))
        yield* credit(payer, 7n)
        assert.isTrue(yield* billing.isSuspendedForBalance(projectId))
        yield* credit(payer, 2n)
        assert.isFalse(yield* billing.isSuspendedForBalance(projectId))
        assert.isFalse(yield* isRefused)
      })
  )
})

describe("prices", () => {
  plain("belong to the month in UTC, from whatever zone a time is written in", () => {
    for (const [last, first] of [
      ["2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00.000Z"],
      ["2027-01-01T08:59:59.999+09:00", "2027-01-01T09:00:00.000+09:00"],
      ["2026-12-31T18:59:59.999-05:00", "2026-12-31T19:00:00.000-05:00"],
      ["2027-01-01T13:59:59.999+14:00", "2027-01-01T14:00:00.000+14:00"]
    ] as const) {
      assert.strictEqual(periodOf(DateTime.makeUnsafe(last)), "2026-12", last)
      assert.strictEqual(periodOf(DateTime.makeUnsafe(first)), "2027-01", first)
    }
  })

  plain("charge every micro-USD once over months, for quantities beyond those of doubles", () => {
    const quantity = fc.bigInt({ min: 0n, max: 10n ** 18n })
    fc.assert(
      fc.property(
        fc.array(quantity, { maxLength: 24 }),
        fc.integer({ min: 0, max: 1_000_000_000 }),
        (months, microUsd) => {
          let carried = 0n
          let charged = 0n
          let cost = 0n
          for (const each of months) {
            const totals = [{ component: "egressBytes", quantity: each }]
            const [rated] = rate(totals, { egressBytes: { microUsd, per: 1024 } })
            const due = rated?.microUsd ?? 0n
            assert.strictEqual(due, (each * BigInt(microUsd)) / 1024n)
            const charge = chargeOf(due + carried)
            cost += due
            charged += charge.cents
            carried = charge.carried
            assert.isTrue(carried >= 0n && carried < 10_000n)
          }
          assert.strictEqual(charged * 10_000n + carried, cost)
        }
      )
    )
  })
})
