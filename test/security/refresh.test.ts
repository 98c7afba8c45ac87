/** Races and theft of refresh tokens, over HTTP on two nodes of one database (ASVS 7). */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { at, guest, type TestResponse, type TestTarget } from "#testing/players"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { codeOf, refresh } from "../support/moderation-calls.ts"
import { sampleSize } from "../support/security/sizes.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

/** The same environment on two nodes. */
const twoNodes = Effect.gen(function* () {
  const other = yield* Layer.build(Layer.fresh(nodeWith()))
  const { development } = yield* makeTenants
  const here: TestTarget = { url: yield* addressOfNode, ...development }
  const there: TestTarget = { ...here, url: yield* Effect.provideContext(addressOfNode, other) }
  return { here, there }
})

const outcomeOf = (answer: TestResponse) => `${answer.status} ${String(codeOf(answer))}`

const concurrentRefreshes = 64

layer(Node, { timeout: "120 seconds" })("refresh tokens (API2, ASVS 7)", (it) => {
  it.effect(
    "one of 64 concurrent refreshes on two nodes succeeds and 63 get refresh_race, every round",
    () =>
      Effect.gen(function* () {
        const { here, there } = yield* twoNodes
        const rounds = sampleSize(200, 3)
        let { refreshToken: current } = yield* guest(here)
        const older: Array<string> = []
        for (let round = 0; round < rounds; round++) {
          const answers = yield* Effect.forEach(
            Array.from({ length: concurrentRefreshes }, (_, index) =>
              index % 2 === 0 ? here : there
            ),
            (node) => refresh(node, current),
            { concurrency: "unbounded" }
          )
          const winners = answers.filter(({ status }) => status === 200)
          assert.lengthOf(winners, 1)
          const losers = answers.filter(({ status }) => status !== 200)
          for (const answer of losers) {
            assert.strictEqual(outcomeOf(answer), "409 refresh_race")
            assert.hasAllKeys(at(answer.body, "error"), ["code", "message"])
          }
          older.push(current)
          current = String(at(winners[0]?.body, "refreshToken"))
        }
        // Any older token revokes the session, on whichever node it is presented.
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(outcomeOf(yield* refresh(there, older[0] ?? "")), "401 session_revoked")
        for (const node of [here, there]) {
          for (const token of [current, ...older.slice(-2)]) {
            assert.strictEqual(outcomeOf(yield* refresh(node, token)), "401 session_revoked")
          }
        }
      }),
    { timeout: 600_000, tags: "sized" }
  )

  it.effect("a replaced token after ten seconds revokes the session on every node", () =>
    Effect.gen(function* () {
      const { here, there } = yield* twoNodes
      const { refreshToken } = yield* guest(here)
      const next = yield* refresh(here, refreshToken)
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual(outcomeOf(yield* refresh(there, refreshToken)), "409 refresh_race")
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(outcomeOf(yield* refresh(there, refreshToken)), "401 session_revoked")
      const newest = String(at(next.body, "refreshToken"))
      assert.strictEqual(outcomeOf(yield* refresh(here, newest)), "401 session_revoked")
    })
  )

  it.effect("a stolen token revokes the session of thief and owner at the second use", () =>
    Effect.gen(function* () {
      const { here, there } = yield* twoNodes
      const { refreshToken: stolen } = yield* guest(here)
      const thief = yield* refresh(there, stolen)
      assert.strictEqual(thief.status, 200)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(outcomeOf(yield* refresh(here, stolen)), "401 session_revoked")
      const rotated = String(at(thief.body, "refreshToken"))
      assert.strictEqual(outcomeOf(yield* refresh(there, rotated)), "401 session_revoked")
    })
  )
})
