/** Answers of spent secrets: repeats, crashes, other bodies and keys, expiry, bounds, and what is stored. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { EnvironmentId } from "#rpc/ids"
import { spentResponses } from "#rpc/spent-secrets"
import { makeTransaction } from "#server/platform/database"
import { SpentResponses, type SpendingRequest } from "#server/platform/spent-responses"
import { coreOfNode, makeTenants, SharedDatabase } from "../support/http-stack.ts"

const Core = coreOfNode().pipe(Layer.provideMerge(SharedDatabase.layer))

const key = "a-key-of-128-random-bits"

/** A secret of an environment, which a request spends by deleting its row. */
const newSecret = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { development } = yield* makeTenants
  const tenant = development.environmentId
  const secret = `secret-of-${tenant}`
  yield* sql`insert into sign_in_links (hash, expires_at) values (${secret}, now())`
  return { tenant, secret }
})

interface Given extends Partial<SpendingRequest> {
  readonly tenant: EnvironmentId
  readonly secret: string
  /** What happens after the secret was spent and the answer stored. */
  readonly after?: Effect.Effect<void, string>
}

const ask = Effect.fnUntraced(function* ({ after = Effect.void, secret, ...given }: Given) {
  const answers = yield* SpentResponses
  const sql = yield* SqlClient.SqlClient
  const transaction = yield* makeTransaction
  const request = { path: "POST /x", body: "body", key, ...given, secret }
  return yield* answers.once(request, Schema.String, {
    spend: Effect.fnUntraced(function* (keep) {
      const taken = yield* sql`delete from sign_in_links where hash = ${secret} returning hash`
      if (taken.length === 0) return yield* Effect.fail("spent" as const)
      yield* keep("kept-plain-text")
      yield* after
      return "first"
    }, transaction),
    repeat: (kept) => Effect.succeed(`again: ${kept}`)
  })
})

const stored = (tenant: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`select a::text as text from spent_answers a where tenant = ${tenant}`
  )

layer(Core)("a request that spends a secret", (it) => {
  it.effect(
    "answers a spent secret again with the same key, and refuses it with another or none",
    () =>
      Effect.gen(function* () {
        const given = yield* newSecret
        assert.strictEqual(yield* ask(given), "first")
        assert.strictEqual(yield* ask(given), "again: kept-plain-text")
        for (const other of [undefined, "another-key-of-128-bits"]) {
          assert.strictEqual(yield* Effect.flip(ask({ ...given, key: other })), "spent")
        }
        const elsewhere = yield* newSecret
        assert.strictEqual(yield* ask({ ...elsewhere, key }), "first", "the key of another secret")
        const path = yield* Effect.flip(ask({ ...given, path: "POST /y" }))
        assert.strictEqual(path, "spent")
      })
  )

  it.effect("gives 32 requests at once the answer of the one that spent the secret", () =>
    Effect.gen(function* () {
      const given = yield* newSecret
      const answers = yield* Effect.forEach(Array.from({ length: 32 }), () => ask(given), {
        concurrency: "unbounded"
      })
      assert.lengthOf(
        answers.filter((answer) => answer === "first"),
        1
      )
      assert.lengthOf(
        answers.filter((answer) => answer === "again: kept-plain-text"),
        31
      )
    })
  )

  it.effect("leaves the secret unspent and stores nothing when it crashes before its commit", () =>
    Effect.gen(function* () {
      const given = yield* newSecret
      yield* Effect.exit(ask({ ...given, after: Effect.die("the process ends") }))
      assert.lengthOf(yield* stored(given.tenant), 0)
      assert.strictEqual(
        yield* Effect.flip(ask({ ...given, after: Effect.fail("refused") })),
        "refused"
      )
      assert.strictEqual(yield* ask(given), "first")
    })
  )

  it.effect("refuses another body under the key of an answer", () =>
    Effect.gen(function* () {
      const given = yield* newSecret
      yield* ask(given)
      const error = yield* Effect.flip(ask({ ...given, body: "another password" }))
      assert.deepInclude(error, { _tag: "idempotency_key_reused" })
    })
  )

  it.effect("refuses a key that is too short for 128 bits before it spends the secret", () =>
    Effect.gen(function* () {
      const given = yield* newSecret
      for (const bad of ["", "x".repeat(21), "x".repeat(129), `${"x".repeat(22)}\n`]) {
        const error = yield* Effect.flip(ask({ ...given, key: bad }))
        assert.deepInclude(error, { _tag: "invalid_idempotency_key" })
      }
      assert.strictEqual(yield* ask(given), "first")
    })
  )

  it.effect("repeats an answer for ten minutes, and deletes it within another", () =>
    Effect.gen(function* () {
      const given = yield* newSecret
      yield* ask(given)
      const [row] = yield* stored(given.tenant)
      for (const plain of ["kept-plain-text", key, given.secret, "body"]) {
        assert.notInclude(String(row?.["text"]), plain)
      }
      yield* TestClock.adjust("599 seconds")
      assert.strictEqual(yield* ask(given), "again: kept-plain-text")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Effect.flip(ask(given)), "spent")
      const swept = Effect.andThen(TestClock.adjust("1 minute"), stored(given.tenant))
      yield* Effect.repeat(swept, { until: (rows) => rows.length === 0 })
    })
  )

  it.effect("stores no further answer once an environment holds the most of them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const full = yield* newSecret
      const other = yield* newSecret
      yield* sql`
        insert into spent_answers (hash, tenant, fingerprint, sealed, expires_at)
        select 'filler ' || n, ${full.tenant}, '', '', now() + interval '100 years'
        from generate_series(1, ${spentResponses.maxPerTenant}::int) n`
      assert.strictEqual(yield* ask(full), "first")
      assert.strictEqual(yield* Effect.flip(ask(full)), "spent")
      assert.strictEqual(yield* ask(other), "first")
      assert.strictEqual(yield* ask(other), "again: kept-plain-text")
    })
  )
})
