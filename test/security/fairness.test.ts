/**
 * Fairness between tenants: one environment at a shared bound delays itself only. And a check that the
 * service has no capacity to run has not passed.
 */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { at, type TestResponse } from "#testing/players"
import { orDieWithTimeout } from "#sql/database"
import { outgoingLimits } from "#server/platform/outgoing"
import { passwordHashes } from "#server/platform/passwords"
import { Tenant } from "#server/platform/tenant"
import { callsOf, emailConfig } from "../support/email/email-harness.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"
import { codeOf, type GamePlayer, newGame } from "../support/players.ts"
import { developersServer, gameWith, json, type Reply } from "../support/webhook.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const report = ({ ask }: GamePlayer, value: number) =>
  ask("POST", "/v1/stats", { stats: { best: value } })

/** Holds every response until it has been called `count` times. */
const heldUntil = (count: number) =>
  Effect.map(Deferred.make<void>(), (reached) => {
    let calls = 0
    const reply: Reply = () => {
      calls += 1
      if (calls === count) Deferred.doneUnsafe(reached, Effect.void)
    }
    return { reply, reached: Deferred.await(reached) }
  })

/**
 * Rejects everything, at first when there is a report of each player. `max` is the largest number of
 * reports of one player at a time.
 */
const rejection = (players: number) => {
  const open = new Map<string, Array<() => void>>()
  const seen = { max: 0, isOpen: false }
  const reply: Reply = (response, { body }) => {
    const player = String(at(JSON.parse(body), "playerId"))
    const ofPlayer = open.get(player) ?? []
    open.set(player, ofPlayer)
    const answer = () => response.end(JSON.stringify({ approve: false }))
    ofPlayer.push(answer)
    // On a busy machine the service may time out and ask again.
    response.once("close", () => {
      const index = ofPlayer.indexOf(answer)
      if (index >= 0) ofPlayer.splice(index, 1)
    })
    seen.max = Math.max(seen.max, ofPlayer.length)
    seen.isOpen ||= open.size === players
    if (!seen.isOpen) return
    for (const waiting of open.values()) for (const reject of waiting.splice(0)) reject()
  }
  return { reply, seen }
}

const hasStored = ({ body }: TestResponse): boolean => at(body, "stats", "best") !== undefined

const manyPlayers = (newPlayer: Effect.Effect<GamePlayer>, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => newPlayer, { concurrency: 4 })

layer(Node, { excludeTestServices: true })("webhooks", (it) => {
  it.effect(
    "stores no forged value, however many reports come at once",
    () =>
      Effect.gen(function* () {
        const { reply, seen } = rejection(12)
        const { url } = yield* developersServer(reply)
        const { newPlayer } = yield* newGame(gameWith({ url, timeoutMs: 5000 }))
        const cheaters = yield* manyPlayers(newPlayer, 12)
        const answers = yield* Effect.forEach(
          cheaters.flatMap((cheater) => Array.from({ length: 58 }, (_, n) => report(cheater, n))),
          (sent) => sent,
          { concurrency: "unbounded" }
        )
        assert.strictEqual(answers.filter(hasStored).length, 0)
        const codes = new Set(answers.filter(({ status }) => status !== 200).map(codeOf))
        // A machine that is too busy to verify a report refuses it, too.
        codes.delete("unavailable")
        assert.deepStrictEqual([...codes], ["rate_limited"])
        assert.strictEqual(seen.max, 1, "reports of one player at a time")
      }),
    { tags: "long" }
  )

  it.effect("answers 503, and does not accept, beyond the reports that one game may verify", () =>
    Effect.gen(function* () {
      const { permitsPerKey } = outgoingLimits.webhooks
      const { reached, reply } = yield* heldUntil(permitsPerKey)
      const { url } = yield* developersServer(reply)
      const { newPlayer } = yield* newGame(gameWith({ url, timeoutMs: 5000 }))
      const players = yield* manyPlayers(newPlayer, permitsPerKey)
      const last = yield* newPlayer
      const held = yield* Effect.forkChild(
        Effect.forEach(players, (player) => report(player, 1), { concurrency: "unbounded" })
      )
      yield* reached
      const answer = yield* report(last, 1)
      assert.strictEqual(answer.status, 503)
      assert.strictEqual(codeOf(answer), "unavailable")
      yield* Fiber.interrupt(held)
    })
  )

  it.effect(
    "calls the webhook of one game while that of another hangs for all its players",
    () =>
      Effect.gen(function* () {
        const { reached, reply } = yield* heldUntil(40)
        const hanging = yield* developersServer(reply)
        const { newPlayer } = yield* newGame(gameWith({ url: hanging.url, timeoutMs: 5000 }))
        const players = yield* manyPlayers(newPlayer, 40)
        const flood = yield* Effect.forkChild(
          Effect.forEach(
            players.flatMap((player) => Array.from({ length: 30 }, (_, n) => report(player, n))),
            (sent) => sent,
            { concurrency: "unbounded" }
          )
        )
        const { received, url } = yield* developersServer(json({ approve: false }))
        const { player: other } = yield* newGame(gameWith({ url }))
        yield* reached
        for (let n = 1; n <= 5; n++) {
          const answer = yield* report(other, n)
          assert.strictEqual(answer.status, 200)
          assert.isFalse(hasStored(answer))
          assert.lengthOf(received, n)
        }
        yield* Fiber.interrupt(flood)
      }),
    { tags: "long" }
  )
})

layer(Node, { excludeTestServices: true })("password hashing", (it) => {
  it.effect(
    "lets players of one game sign in while another game's sign-ins fill its queue",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const callsOfGame = Effect.gen(function* () {
          const { development } = yield* makeTenants
          yield* configure(development, emailConfig)
          return callsOf(url, development)
        })
        const [flooded, other] = yield* Effect.all([callsOfGame, callsOfGame])
        yield* flooded.signUp("a@example.com")
        yield* other.signUp("b@example.com")
        const done = { count: 0 }
        const attempts = 4 * (passwordHashes.concurrency + passwordHashes.waitingPerTenant)
        const flood = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: attempts }),
            () =>
              Effect.tap(flooded.logIn("a@example.com", "a wrong password"), () =>
                Effect.sync(() => void (done.count += 1))
              ),
            { concurrency: "unbounded" }
          )
        )
        // Those that find the queue full are answered first.
        while (done.count === 0) yield* Effect.yieldNow
        for (let n = 0; n < 3; n++) {
          assert.strictEqual((yield* other.logIn("b@example.com")).status, 200)
        }
        assert.isBelow(done.count, attempts, "the queue is still full")
        const answers = yield* Fiber.join(flood)
        assert.sameMembers(
          [...new Set(answers.map(codeOf))],
          ["invalid_credentials", "unavailable"]
        )
      }),
    { tags: "long" }
  )
})

layer(Node, { excludeTestServices: true })("the connection pool", (it) => {
  it.effect("runs statements of one game while those of another are slow and many", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const slow = sql`select pg_sleep(4)`
      let finished = 0
      const flood = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 40 }, (_, n) =>
            n % 2 === 0 ? orDieWithTimeout(slow) : Effect.orDie(sql.withTransaction(slow))
          ),
          (statement) => Effect.andThen(statement, () => Effect.sync(() => void (finished += 1))),
          { concurrency: "unbounded" }
        ).pipe(Effect.provideService(Tenant, "flooding")),
        { startImmediately: true }
      )
      const { player } = yield* newGame({ features: { saves: true } })
      const put = yield* player.ask("PUT", "/v1/saves/one", { data: 1 })
      assert.strictEqual(put.status, 200)
      const read = yield* player.ask("GET", "/v1/saves/one")
      assert.strictEqual(at(read.body, "data"), 1)
      // Without shares, 30 of the flood come before the first statement of the others.
      assert.isBelow(finished, 24)
      yield* Fiber.interrupt(flood)
    })
  )
})
