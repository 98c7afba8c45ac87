/** The ledger of prepaid money against a model, and when processes crash or repeat an event. */
import { assert, describe, it as plain, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import type { DeveloperId } from "#rpc/ids"
import { type LedgerAccount, LedgerRepository } from "#sql/money/ledger"
import { Ledger, type LedgerEvent } from "#server/features/money/ledger"
import {
  chargeUsage,
  confirmInvite,
  creditFrom,
  grantInvite,
  type Movement,
  returnToProvider
} from "#server/features/money/postings"
import { creditDeveloper } from "#server/features/money/operator"
import {
  coreOfNode,
  makeDeveloper,
  makeTenantsOf,
  SharedDatabase
} from "../../support/http-stack.ts"

const App = coreOfNode().pipe(Layer.provideMerge(SharedDatabase.layer))

type Step =
  | { readonly kind: "topup" | "adjustment" | "refund" | "usage"; readonly cents: number }
  | { readonly kind: "grant" | "pending" | "confirm" }

const amount = fc.integer({ min: 1, max: 100_000 })

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("topup", "adjustment", "refund", "usage", "usage"),
    cents: amount
  }),
  fc.record({ kind: fc.constantFrom("grant", "pending", "confirm") })
)

/** A step of a history, and how many runners take it at once. */
const histories = fc.array(fc.tuple(step, fc.integer({ min: 1, max: 2 })), { maxLength: 8 })

/** What a developer has, by the simplest arithmetic. */
class Model {
  prepaid = 0
  owed = 0
  invite = 0
  pending = 0
  #granted = false
  #confirmed = false

  apply(next: Step): void {
    switch (next.kind) {
      case "topup":
      case "adjustment": {
        this.prepaid += next.cents
        return this.#settle()
      }
      case "refund": {
        this.prepaid -= next.cents
        return this.#settle()
      }
      case "usage": {
        const free = Math.min(this.invite, next.cents)
        this.invite -= free
        this.prepaid -= next.cents - free
        return this.#settle()
      }
      case "grant":
      case "pending": {
        if (!this.#granted) this[next.kind === "grant" ? "invite" : "pending"] += 500
        this.#granted = true
        return
      }
      case "confirm": {
        if (this.#confirmed || this.pending === 0) return
        this.invite += this.pending
        this.pending = 0
        this.#confirmed = true
      }
    }
  }

  #settle(): void {
    const net = this.prepaid - this.owed
    this.prepaid = Math.max(0, net)
    this.owed = Math.max(0, -net)
  }
}

const movementOf = (next: Step): Movement => {
  if (next.kind === "confirm") return confirmInvite
  if (!("cents" in next)) {
    return grantInvite(next.kind === "grant" ? "invite" : "invite_pending", 500n)
  }
  const cents = BigInt(next.cents)
  return {
    topup: creditFrom("provider", cents),
    adjustment: creditFrom("adjustments", cents),
    refund: returnToProvider(cents),
    usage: chargeUsage(cents)
  }[next.kind]
}

const take = Effect.fnUntraced(function* (developerId: DeveloperId, source: string, next: Step) {
  const ledger = yield* Ledger
  if (next.kind === "confirm") return yield* ledger.confirmInvite(developerId)
  if (!("cents" in next)) {
    return yield* ledger.grantInvite({ developerId, pending: next.kind === "pending" })
  }
  const { kind } = next
  return yield* ledger.post({
    developerId,
    kind,
    source,
    description: kind,
    movement: movementOf(next)
  })
})

const positions = Effect.fnUntraced(function* (developerId: DeveloperId) {
  const ledger = yield* Ledger
  const { invite, invitePending, owed, prepaid } = yield* ledger.balances(developerId)
  return {
    prepaid: Number(prepaid),
    owed: Number(-owed),
    invite: Number(invite),
    pending: Number(invitePending)
  }
})

const positionsOf = ({ invite, owed, pending, prepaid }: Model) => ({
  prepaid,
  owed,
  invite,
  pending
})

/** Rows that break a rule of the books: sums of transactions, and balances after each posting. */
const faults = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    select transaction_id as id, 'unbalanced' as fault from ledger_postings
    group by transaction_id having sum(amount) <> 0
    union all
    select id, 'balance' from (
      select id, balance_after, sum(amount) over (
        partition by developer_id, account order by sequence) as running
      from ledger_postings) p
    where balance_after <> running
    union all
    select id, 'empty' from ledger_transactions t
    where not exists (select from ledger_postings p where p.transaction_id = t.id)`
})

layer(App, { timeout: "120 seconds", excludeTestServices: true })("the ledger", (it) => {
  it.effect(
    "matches the balances of a model ledger after random histories with repeated events",
    () =>
      Effect.gen(function* () {
        const samples = fc.sample(histories, { numRuns: 30, seed: 20_261_122 })
        yield* Effect.forEach(
          samples,
          Effect.fnUntraced(function* (history, h) {
            const { developerId } = yield* makeDeveloper
            const model = new Model()
            for (const [i, [next, runners]] of history.entries()) {
              const attempt = take(developerId, `history:${h}:${i}`, next)
              yield* Effect.all(
                Array.from({ length: runners }, () => attempt),
                {
                  concurrency: "unbounded"
                }
              )
              model.apply(next)
            }
            assert.deepStrictEqual(
              yield* positions(developerId),
              positionsOf(model),
              JSON.stringify(history)
            )
          }),
          { concurrency: 8, discard: true }
        )
        assert.deepStrictEqual(yield* faults, [])
      })
  )

  it.effect(
    "posts an event wholly or not at all when the process dies between two statements",
    () =>
      Effect.gen(function* () {
        const { developerId } = yield* makeDeveloper
        const repository = yield* LedgerRepository
        const event = (source: string): LedgerEvent => ({
          developerId,
          kind: "topup",
          source,
          description: "Top-up",
          movement: creditFrom("provider", 700n)
        })
        const ledger = yield* Ledger
        let survived = 0
        for (let fatal = 0; survived === 0; fatal++) {
          let calls = 0
          const crashing = <A extends object>(service: A): A =>
            new Proxy(service, {
              get: (target, name) => {
                const method: unknown = Reflect.get(target, name)
                if (typeof method !== "function") return method
                return (...args: ReadonlyArray<unknown>) =>
                  Effect.suspend(() => {
                    const run: Effect.Effect<unknown> = Reflect.apply(method, target, args)
                    const isLast = ++calls === fatal
                    return isLast ? Effect.andThen(run, Effect.die("crashed")) : run
                  })
              }
            })
          const dying = Layer.fresh(Ledger.layer).pipe(
            Layer.provide(Layer.succeed(LedgerRepository, crashing(repository)))
          )
          const source = `crash:${fatal}`
          const exit = yield* Effect.exit(
            Effect.flatMap(Ledger, (it) => it.post(event(source))).pipe(Effect.provide(dying))
          )
          const before = (yield* ledger.balances(developerId)).prepaid
          assert.strictEqual(before, BigInt(fatal + (Exit.isSuccess(exit) ? 1 : 0)) * 700n)
          assert.strictEqual(yield* ledger.post(event(source)), Exit.isFailure(exit))
          if (Exit.isSuccess(exit) && fatal > 0) survived = fatal
        }
        assert.isAtLeast(survived, 4)
        assert.deepStrictEqual(yield* faults, [])
      })
  )

  it.effect("posts an event of two runners at once, once", () =>
    Effect.gen(function* () {
      const { developerId } = yield* makeDeveloper
      const posted = yield* Effect.all(
        Array.from({ length: 10 }, () => take(developerId, "same", { kind: "topup", cents: 900 })),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(posted.filter(Boolean), 1)
      assert.strictEqual((yield* positions(developerId)).prepaid, 900)
    })
  )

  it.effect("refuses in the database every change of the past, and unbalanced postings", () =>
    Effect.gen(function* () {
      const { developerId } = yield* makeDeveloper
      yield* take(developerId, "kept", { kind: "topup", cents: 900 })
      const sql = yield* SqlClient.SqlClient
      const rows = sql`select * from ledger_postings order by sequence`
      const before = yield* rows
      for (const attempt of [
        sql`update ledger_postings set amount = amount * 2`,
        sql`delete from ledger_postings`,
        sql`truncate ledger_postings`,
        sql`truncate ledger_transactions cascade`,
        sql`update ledger_transactions set kind = 'invite'`,
        sql`delete from ledger_transactions`,
        sql`delete from developers where id = ${developerId}`,
        sql`
          insert into ledger_postings
            (id, transaction_id, developer_id, account, amount, balance_after, created_at)
          select 'led_forged', transaction_id, developer_id, account, 1, balance_after + 1, created_at
          from ledger_postings where developer_id = ${developerId} and account = 'prepaid'`
      ]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(attempt)))
      }
      assert.deepStrictEqual(yield* rows, before)
    })
  )

  it.effect("credits a developer for the operator, once for each reference", () =>
    Effect.gen(function* () {
      const { developerId, email } = yield* makeDeveloper
      const { projectId } = yield* makeTenantsOf(developerId)
      const credit = { developer: email.toUpperCase(), cents: 2500, reason: "Invoice 7" }
      assert.isTrue(yield* creditDeveloper({ ...credit, reference: "invoice-7" }))
      assert.isFalse(yield* creditDeveloper({ ...credit, reference: "invoice-7" }))
      assert.isTrue(yield* creditDeveloper({ ...credit, reference: undefined }))
      assert.isTrue(
        yield* creditDeveloper({ ...credit, developer: developerId, reference: undefined })
      )
      assert.strictEqual((yield* positions(developerId)).prepaid, 7500)
      // Each developer may have an invoice 7.
      const { developerId: other } = yield* makeDeveloper
      const another = { ...credit, developer: other, reference: "invoice-7" }
      assert.isTrue(yield* creditDeveloper(another))
      assert.isFalse(yield* creditDeveloper(another))
      assert.isFalse(yield* creditDeveloper({ ...credit, reference: "invoice-7" }))
      assert.strictEqual((yield* positions(other)).prepaid, 2500)
      const sql = yield* SqlClient.SqlClient
      assert.deepStrictEqual(
        yield* sql`select actor_id, action, details from audit where project_id = ${projectId}`,
        Array.from({ length: 3 }, () => ({
          actorId: "operator",
          action: "money.credit",
          details: JSON.stringify({ cents: 2500, reason: "Invoice 7" })
        }))
      )
      for (const wrong of [{ developer: "nobody@example.com" }, { cents: 0 }, { cents: -5 }]) {
        const refused = creditDeveloper({ ...credit, ...wrong, reference: undefined })
        assert.isTrue(Exit.isFailure(yield* Effect.exit(refused)))
      }
    })
  )

  it.effect("knows since when money has been owed without a break", () =>
    Effect.gen(function* () {
      const { developerId } = yield* makeDeveloper
      const repository = yield* LedgerRepository
      const since = Effect.map(repository.owedSince(developerId), Option.getOrUndefined)
      yield* take(developerId, "owed:1", { kind: "usage", cents: 100 })
      yield* take(developerId, "owed:2", { kind: "topup", cents: 300 })
      assert.isUndefined(yield* since)
      yield* take(developerId, "owed:3", { kind: "usage", cents: 300 })
      const first = yield* since
      assert.isDefined(first)
      yield* take(developerId, "owed:4", { kind: "usage", cents: 300 })
      yield* take(developerId, "owed:5", { kind: "topup", cents: 300 })
      assert.deepStrictEqual(yield* since, first)
    })
  )
})

/** The postings of a history, by the rules alone; an event is posted once. */
const applied = (history: ReadonlyArray<readonly [Step, number]>) => {
  const sums = new Map<string, bigint>()
  const of = (account: LedgerAccount) => sums.get(account) ?? 0n
  const invitations = new Set<string>()
  for (const [next] of history) {
    const event = next.kind === "pending" ? "grant" : next.kind
    if (!("cents" in next) && invitations.has(event)) continue
    const postings = movementOf(next)({
      prepaid: of("prepaid"),
      owed: of("owed"),
      invite: of("invite"),
      invitePending: of("invite_pending")
    })
    if (postings.length > 0) invitations.add(event)
    for (const posting of postings) sums.set(posting.account, of(posting.account) + posting.amount)
    assert.strictEqual(
      [...sums.values()].reduce((a, b) => a + b, 0n),
      0n
    )
  }
  return {
    prepaid: Number(of("prepaid")),
    owed: Number(-of("owed")),
    invite: Number(of("invite")),
    pending: Number(of("invite_pending"))
  }
}

describe("postings", () => {
  plain("have the balances of a model in 1,000 random histories", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(step, fc.constant(1)), { maxLength: 40 }), (history) => {
        const model = new Model()
        for (const [next] of history) model.apply(next)
        assert.deepStrictEqual(applied(history), positionsOf(model))
      }),
      { numRuns: 1000 }
    )
  })

  plain("add up to zero for any balances", () => {
    const cents = fc.bigInt({ min: 0n, max: 10n ** 12n })
    fc.assert(
      fc.property(cents, cents, cents, cents, (prepaid, owed, invite, moved) => {
        const before = { prepaid, owed: -owed, invite, invitePending: 0n }
        for (const movement of [
          creditFrom("provider", moved),
          returnToProvider(moved),
          chargeUsage(moved)
        ]) {
          const sum = movement(before).reduce((total, posting) => total + posting.amount, 0n)
          assert.strictEqual(sum, 0n)
        }
      })
    )
  })
})
