/** Dead letters over HTTP: developers list, retry and delete what failed for good. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { makeClaim } from "#server/features/functions/deliveries"
import { at } from "#testing/players"
import { addDeadLetter } from "../../support/dead-letters.ts"
import { call, deploy, enable } from "../../support/function-calls.ts"
import { FakeRuntime } from "../../support/function-runtime.ts"
import { codeOf } from "../../support/moderation-calls.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  return { target: { url, ...development }, other: { url, ...production } }
})

type Target = Parameters<typeof call>[0]

const listed = (target: Target, query = "") =>
  Effect.map(call(target, "GET", `/dead-letters${query}`), ({ body }) => {
    const letters: unknown = at(body, "deadLetters")
    return { letters: Array.isArray(letters) ? letters : [], next: at(body, "nextCursor") }
  })

/** Delivers until nothing is due. */
const deliverAll = Effect.gen(function* () {
  const claim = yield* makeClaim
  let delivery = yield* claim
  while (delivery !== undefined) {
    yield* delivery
    delivery = yield* claim
  }
})

layer(Node, { timeout: "60 seconds" })("dead letters of functions", (it) => {
  it.effect(
    "lists dead letters of functions newest first, by page, by queue, and of one environment alone",
    () =>
      Effect.gen(function* () {
        const { other, target } = yield* setUp
        const { environmentId } = target
        const first = yield* addDeadLetter(environmentId)
        const second = yield* addDeadLetter(environmentId, "\u{FF}", "bytes")
        const { letters, next } = yield* listed(target)
        assert.strictEqual(next, null)
        assert.deepStrictEqual(
          letters.map((letter) => at(letter, "id")),
          [second, first]
        )
        assert.deepStrictEqual(letters[1], {
          id: first,
          kind: "message",
          name: "JOBS",
          contentType: "json",
          encoding: "utf8",
          body: '{"n":1}',
          attempts: 5,
          sentAt: "2026-01-01T00:00:00.000Z",
          failedAt: "2026-01-02T00:00:00.000Z"
        })
        assert.deepInclude(letters[0], { encoding: "base64", body: "w78=" })
        const page = yield* listed(target, "?limit=1")
        assert.deepStrictEqual([page.letters.length, page.next], [1, second])
        const rest = yield* listed(target, `?limit=1&cursor=${second}`)
        assert.deepStrictEqual([at(rest.letters[0], "id"), rest.next], [first, null])
        assert.strictEqual((yield* listed(target, "?name=JOBS")).letters.length, 2)
        assert.strictEqual((yield* listed(target, "?name=OTHER")).letters.length, 0)
        assert.strictEqual((yield* listed(other)).letters.length, 0)
        for (const wrong of ["?cursor=a", "?limit=0", "?name=%00", `?cursor=${"9".repeat(19)}`]) {
          const answer = yield* call(target, "GET", `/dead-letters${wrong}`)
          assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_request"], wrong)
        }
      })
  )

  it.effect("gives a retried dead letter all five attempts again, and deletes it on delivery", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const { environmentId } = target
      const runtime = yield* FakeRuntime
      yield* enable(target)
      yield* deploy(target, { bindings: [{ name: "JOBS", type: "queue" }] })
      const id = yield* addDeadLetter(environmentId)
      const retry = Effect.gen(function* () {
        const retried = yield* call(target, "POST", `/dead-letters/${id}/retry`)
        assert.deepStrictEqual([retried.status, retried.body], [200, { id }])
        assert.strictEqual((yield* listed(target)).letters.length, 0)
      })
      const attempts = () =>
        runtime.calls.flatMap(({ detail, environmentId: of, kind }) =>
          of === environmentId && kind === "deliver" ? [at(detail, "messages", 0, "attempts")] : []
        )
      yield* retry
      runtime.isBroken = true
      for (let i = 0; i < 8; i++) {
        yield* deliverAll
        yield* TestClock.adjust("10 minutes")
      }
      runtime.isBroken = false
      assert.deepStrictEqual(attempts(), [1, 2, 3, 4, 5])
      assert.deepInclude((yield* listed(target)).letters[0], { id, attempts: 5 })
      yield* retry
      yield* deliverAll
      assert.deepStrictEqual(attempts(), [1, 2, 3, 4, 5, 1])
      const sql = yield* SqlClient.SqlClient
      const left = yield* sql`
        select id from function_deliveries where environment_id = ${environmentId}`
      assert.strictEqual(left.length, 0)
    })
  )

  it.effect(
    "answers 404 for a dead letter that is deleted, retried or of another environment, and for no id",
    () =>
      Effect.gen(function* () {
        const { other, target } = yield* setUp
        const id = yield* addDeadLetter(target.environmentId)
        const statusOf = (of: Target, method: string, path: string) =>
          Effect.map(call(of, method, `/dead-letters/${path}`), ({ status }) => status)
        assert.strictEqual(yield* statusOf(other, "DELETE", id), 404)
        assert.strictEqual(yield* statusOf(other, "POST", `${id}/retry`), 404)
        assert.strictEqual(yield* statusOf(target, "DELETE", id), 200)
        assert.strictEqual(yield* statusOf(target, "DELETE", id), 404)
        assert.strictEqual(yield* statusOf(target, "POST", `${id}/retry`), 404)
        const again = yield* addDeadLetter(target.environmentId)
        assert.strictEqual(yield* statusOf(target, "POST", `${again}/retry`), 200)
        // What waits is not dead.
        assert.strictEqual(yield* statusOf(target, "DELETE", again), 404)
        for (const wrong of ["a", "-1", "1e3", "9".repeat(19), "%00"]) {
          assert.strictEqual(yield* statusOf(target, "DELETE", wrong), 404, wrong)
        }
      })
  )
})
