/**
 * Memory bounds that no other test reaches: outgoing requests, player sessions per bucket and rejected stats.
 * The tests of each feature cover its own queues and caches.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { signalsPerEnvironment, StatRepository } from "#sql/stats"
import { SessionsActor } from "#entities/player-session/actor"
import type { SessionOutput } from "#entities/player-session/protocol"
import { playerSessions } from "#entities/player-session/protocol"
import { noReservation } from "#entities/player-session/state"
import { Outgoing, outgoingLimits } from "#server/platform/outgoing"
import { nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { startServer } from "../support/local-server.ts"
import { newGame } from "../support/players.ts"

describe("outgoing requests", () => {
  it.live("refuses a tenant's 321st outgoing request until another one of it ends", () =>
    Effect.gen(function* () {
      const { port } = yield* startServer(() => undefined)
      const service = yield* Outgoing
      const { permitsPerKey, waitingPerKey } = outgoingLimits.webhooks
      const sendOf = (tenant: string) =>
        service.request({
          purpose: "webhooks",
          tenant,
          url: `http://127.0.0.1:${port}/`,
          method: "GET",
          headers: {},
          timeoutMillis: 20_000,
          responseMaxBytes: 1024,
          targets: "loopback"
        })
      const fork = (tenant: string) => Effect.forkChild(sendOf(tenant), { startImmediately: true })
      const underWay = yield* Effect.forEach(
        Array.from({ length: permitsPerKey + waitingPerKey }),
        () => fork("a")
      )
      assert.strictEqual((yield* Effect.flip(sendOf("a")))._tag, "unavailable")
      const other = yield* fork("b")
      assert.isUndefined(other.pollUnsafe())
      yield* Fiber.interruptAll([...underWay, other])
      const again = yield* fork("a")
      assert.isUndefined(again.pollUnsafe())
      yield* Fiber.interrupt(again)
    }).pipe(Effect.provide(Outgoing.layer), Effect.scoped)
  )
})

describe("a bucket of player sessions", () => {
  it("refuses a player beyond 100,000 until another one disconnects", () => {
    const loads: Array<ReadonlyArray<string>> = []
    const runtime = {
      now: () => 0,
      hasLease: () => true,
      idleMillis: 1000,
      wakeAt: () => undefined
    }
    const actor = new SessionsActor(1, { ...runtime, load: (players) => void loads.push(players) })
    const outputs: Array<SessionOutput> = []
    actor.activation.admit("n1", 1)
    actor.attach("n1", { send: (items) => void outputs.push(...items), end: () => undefined }, [])
    const attach = (seq: number) => ({
      seq,
      command: {
        t: "attach",
        playerId: `p${seq}`,
        connectionId: `c${seq}`,
        reservation: noReservation
      } as const
    })
    const submit = (...inputs: Parameters<typeof actor.submit>[1]) => {
      actor.submit("n1", inputs)
      for (const players of loads.splice(0)) actor.loaded(players, new Map())
    }
    const full = playerSessions.perBucket
    const step = 10_000
    for (let from = 1; from <= full; from += step) {
      submit(...Array.from({ length: step }, (_, index) => attach(from + index)))
    }
    assert.strictEqual(actor.size, full)
    submit(attach(full + 1))
    assert.deepInclude(outputs.at(-1), { kind: "refused", seq: full + 1 })
    assert.strictEqual(actor.size, full)
    submit({ seq: full + 2, command: { t: "detach", playerId: "p1", connectionId: "c1" } })
    submit(attach(full + 3))
    assert.deepInclude(outputs.at(-1), { kind: "done", seq: full + 3 })
    assert.strictEqual(actor.size, full)
  })
})

const Node = StatRepository.layer.pipe(
  Layer.provideMerge(nodeWith()),
  Layer.provideMerge(SharedDatabase.layer)
)

layer(Node)("rejected stats", (it) => {
  it.effect("keeps the newest 10,000 rejected stats of each environment", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const repository = yield* StatRepository
      const reject = Effect.fnUntraced(function* (count: number) {
        const { environmentId, player } = yield* newGame({})
        yield* sql`
          insert into stat_signals (environment_id, player_id, stat, value, reason, created_at)
          select ${environmentId}, ${player.id}, 'score', n, 'above_max', now()
          from generate_series(1, ${count}::int) n`
        return sql`
          select count(*)::int as count, min(value)::int as oldest from stat_signals
          where environment_id = ${environmentId}`
      })
      const many = yield* reject(signalsPerEnvironment + 50)
      const few = yield* reject(10)
      yield* repository.sweep(DateTime.makeUnsafe(0))
      const max = signalsPerEnvironment
      assert.deepStrictEqual(yield* many, [{ count: max, oldest: 51 }])
      assert.deepStrictEqual(yield* few, [{ count: 10, oldest: 1 }])
    })
  )
})
