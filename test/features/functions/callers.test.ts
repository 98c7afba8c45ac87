/** What calls functions beside requests: crons, messages of queues, and events of the environment. */
import { assert, layer } from "@effect/vitest"
import { Context, DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { newId } from "#rpc/ids"
import { FunctionsRepository } from "#sql/functions/settings"
import { RoomRepository, type RoomRow } from "#sql/rooms"
import { makeFireDue } from "#server/features/functions/crons"
import { makeClaim } from "#server/features/functions/deliveries"
import { FunctionsQueues, FunctionsSource } from "#server/features/functions/control-plane"
import { at, guest, request, type TestTarget } from "#testing/players"
import { call, deploy, enable } from "../../support/function-calls.ts"
import { FakeRuntime } from "../../support/function-runtime.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  const target = { url, ...development }
  yield* enable(target)
  const runtime = yield* FakeRuntime
  const callsOf = (kind: string) =>
    runtime.calls.filter((one) => one.kind === kind && one.environmentId === target.environmentId)
  return { target, production: { url, ...production }, runtime, callsOf }
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

const text = (body: unknown): string =>
  body instanceof Uint8Array ? Buffer.from(body).toString() : ""

const jsonMessage = (value: unknown, delaySeconds = 0) => ({
  contentType: "json" as const,
  body: new Uint8Array(Buffer.from(JSON.stringify(value))),
  delaySeconds
})

/** Reports stats as a player. */
const report = (
  { publishableKey, url }: TestTarget,
  accessToken: string,
  stats: Readonly<Record<string, number>>
) =>
  request(`${url}/v1/stats`, {
    headers: { "x-svc-key": publishableKey, authorization: `Bearer ${accessToken}` },
    body: { stats }
  })

const roomRow = (id: string, environmentId: string, createdAt: string): RoomRow => ({
  id,
  environmentId,
  epoch: 1,
  node: "node",
  code: "BCDF",
  mode: "duel",
  listed: true,
  matched: false,
  maxPlayers: 2,
  hostId: null,
  metadata: "{}",
  createdAt,
  dueAt: createdAt,
  members: [],
  snapshot: "{}"
})

layer(Node, { timeout: "60 seconds" })("callers of functions", (it) => {
  it.effect("fires a cron once for each tick over two nodes", () =>
    Effect.gen(function* () {
      const { callsOf, target } = yield* setUp
      const other = yield* Layer.build(Layer.fresh(nodeWith()))
      yield* deploy(target, { crons: ["*/5 * * * *"] })
      const here = yield* makeFireDue
      const there = yield* Effect.provide(makeFireDue, other)
      const both = Effect.all([here, there, here, there], { concurrency: "unbounded" })
      yield* both
      assert.strictEqual(callsOf("scheduled").length, 0)
      const theirs = Context.get(other, FakeRuntime)
      const all = () => [
        ...callsOf("scheduled"),
        ...theirs.calls.filter(
          ({ environmentId, kind }) =>
            kind === "scheduled" && environmentId === target.environmentId
        )
      ]
      for (const ticks of [1, 2, 3]) {
        yield* TestClock.adjust("5 minutes")
        yield* both
        assert.strictEqual(all().length, ticks)
      }
      const times = all().map(({ detail }) => Number(at(detail, "scheduledTime")))
      assert.strictEqual(new Set(times).size, 3)
      assert.isTrue(times.every((time) => time % 300_000 === 0))
      yield* TestClock.adjust("1 hour")
      yield* both
      assert.strictEqual(all().length, 4, "ticks that nobody saw fire once")
    })
  )

  it.effect(
    "fires no cron while functions are disabled or suspended, nor after their deletion",
    () =>
      Effect.gen(function* () {
        const { callsOf, target } = yield* setUp
        const { environmentId } = target
        const source = yield* FunctionsSource
        const repository = yield* FunctionsRepository
        const fire = yield* makeFireDue
        yield* deploy(target, { crons: ["* * * * *"] })
        yield* call(target, "POST", "/disable")
        yield* TestClock.adjust("2 minutes")
        yield* fire
        assert.strictEqual(callsOf("scheduled").length, 0)
        yield* enable(target)
        yield* fire
        assert.strictEqual(callsOf("scheduled").length, 1)
        yield* source.suspend(environmentId)
        yield* TestClock.adjust("2 minutes")
        yield* fire
        assert.strictEqual(callsOf("scheduled").length, 1)
        yield* repository.setSuspended({ environmentId, reason: null })
        yield* fire
        assert.strictEqual(callsOf("scheduled").length, 2)
        yield* call(target, "DELETE")
        yield* TestClock.adjust("2 minutes")
        yield* fire
        assert.strictEqual(callsOf("scheduled").length, 2)
      })
  )

  it.effect("delivers queue messages in order, and again until the code acknowledges them", () =>
    Effect.gen(function* () {
      const { callsOf, runtime, target } = yield* setUp
      const queues = yield* FunctionsQueues
      yield* deploy(target, { bindings: [{ name: "JOBS", type: "queue" }] })
      const { environmentId } = target
      const messages = [jsonMessage(1), jsonMessage(2), jsonMessage(3, 60)]
      assert.strictEqual(yield* queues.send(environmentId, "JOBS", messages), "stored")
      const status = yield* call(target, "GET")
      assert.deepStrictEqual(at(status.body, "resources", "queues"), [
        { binding: "JOBS", messages: 3 }
      ])
      runtime.retry = ({ body }) => text(body) === "2"
      yield* deliverAll
      const bodies = () =>
        callsOf("deliver").map(({ detail }) => {
          const sent = at(detail, "messages")
          return Array.isArray(sent) ? sent.map((message) => text(at(message, "body"))) : []
        })
      assert.deepStrictEqual(bodies(), [["1", "2"]])
      yield* TestClock.adjust("2 seconds")
      yield* deliverAll
      assert.deepStrictEqual(bodies(), [["1", "2"], ["2"]])
      runtime.retry = () => false
      yield* TestClock.adjust("4 seconds")
      yield* deliverAll
      assert.deepStrictEqual(bodies(), [["1", "2"], ["2"], ["2"]])
      assert.strictEqual(at(callsOf("deliver")[2]?.detail, "messages", 0, "attempts"), 3)
      yield* TestClock.adjust("1 minute")
      yield* deliverAll
      assert.deepStrictEqual(bodies().at(-1), ["3"])
      assert.strictEqual((yield* queues.waiting(environmentId)).size, 0)
    })
  )

  it.effect("gives up a queue message after five attempts, and says so in the logs", () =>
    Effect.gen(function* () {
      const { callsOf, runtime, target } = yield* setUp
      const queues = yield* FunctionsQueues
      const sql = yield* SqlClient.SqlClient
      yield* deploy(target, { bindings: [{ name: "JOBS", type: "queue" }] })
      const { environmentId } = target
      yield* queues.send(environmentId, "JOBS", [jsonMessage("poison")])
      runtime.isBroken = true
      for (let i = 0; i < 8; i++) {
        yield* deliverAll
        yield* TestClock.adjust("10 minutes")
      }
      runtime.isBroken = false
      assert.strictEqual(callsOf("deliver").length, 5)
      const rows = yield* sql`
        select due_at, failed_at from function_deliveries where environment_id = ${environmentId}`
      assert.strictEqual(at(rows, 0, "dueAt"), null)
      assert.isNotNull(at(rows, 0, "failedAt"))
      assert.strictEqual((yield* queues.waiting(environmentId)).size, 0)
      const { body } = yield* call(target, "GET", "/dead-letters")
      const letter = at(body, "deadLetters", 0)
      assert.deepInclude(letter, { name: "JOBS", body: '"poison"', attempts: 5 })
      const lastLine = Effect.map(call(target, "GET", "/logs?limit=1"), ({ body: line }) => line)
      const line = yield* Effect.repeat(lastLine, { until: (last) => at(last, "id") !== undefined })
      assert.deepInclude(line, {
        level: "error",
        message: `Gave up message ${String(at(letter, "id"))} of JOBS: "poison"`
      })
    })
  )

  it.effect("delivers each queue message once over two nodes, to its own environment only", () =>
    Effect.gen(function* () {
      const { production, runtime, target } = yield* setUp
      const other = yield* Layer.build(Layer.fresh(nodeWith()))
      const theirs = Context.get(other, FakeRuntime)
      const queues = yield* FunctionsQueues
      yield* enable(production)
      for (const environment of [target, production]) yield* deploy(environment)
      const sent = Array.from({ length: 90 }, (_, i) => jsonMessage(i))
      yield* queues.send(target.environmentId, "JOBS", sent)
      yield* queues.send(production.environmentId, "JOBS", [jsonMessage("production")])
      yield* Effect.all([deliverAll, Effect.provide(deliverAll, other)], {
        concurrency: "unbounded"
      })
      const bodiesOf = (of: string) =>
        [...runtime.calls, ...theirs.calls]
          .filter(({ environmentId, kind }) => kind === "deliver" && environmentId === of)
          .flatMap(({ detail }) => {
            const batch = at(detail, "messages")
            return Array.isArray(batch) ? batch.map((message) => text(at(message, "body"))) : []
          })
      const bodies = bodiesOf(target.environmentId)
      assert.strictEqual(bodies.length, 90)
      assert.sameMembers(
        bodies,
        sent.map(({ body }) => text(body))
      )
      assert.deepStrictEqual(bodiesOf(production.environmentId), ['"production"'])
    })
  )

  it.effect("refuses a queue message beyond the 10,000 that an environment may have waiting", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const sql = yield* SqlClient.SqlClient
      const queues = yield* FunctionsQueues
      const { environmentId } = target
      const now = DateTime.toDateUtc(yield* DateTime.now)
      yield* sql`
        insert into function_deliveries (environment_id, kind, target, content_type, body, sent_at,
          due_at)
        select ${environmentId}, 'message', 'JOBS', 'json', '1', ${now}, ${now}
        from generate_series(1, 9999)`
      assert.strictEqual(yield* queues.send(environmentId, "JOBS", [jsonMessage(1)]), "stored")
      assert.strictEqual(yield* queues.send(environmentId, "JOBS", [jsonMessage(2)]), "full")
      yield* queues.clear(environmentId)
    })
  )

  it.effect("calls the hooks that live functions export, once the change is stored", () =>
    Effect.gen(function* () {
      const { callsOf, production, runtime, target } = yield* setUp
      const rooms = yield* RoomRepository
      yield* configure(target, { features: { stats: true }, stats: [{ key: "score" }] })
      yield* guest(target)
      runtime.hooks = ["onPlayerCreated", "onStats", "onRoomClosed"]
      yield* deploy(target)
      runtime.hooks = []
      const player = yield* guest(target)
      yield* guest(production)
      yield* report(target, player.accessToken, { score: 5 })
      yield* report(target, player.accessToken, { score: 6 })
      const id = yield* newId.room
      const createdAt = DateTime.formatIso(yield* DateTime.now)
      yield* rooms.insert(roomRow(id, target.environmentId, createdAt))
      yield* rooms.remove([{ id, epoch: 2 }])
      yield* rooms.remove([{ id, epoch: 2 }])
      yield* deliverAll
      const hooks = callsOf("hook").map(({ detail }) => [at(detail, "hook"), at(detail, "payload")])
      assert.deepStrictEqual(hooks.map(([hook]) => hook).toSorted(), [
        "onPlayerCreated",
        "onRoomClosed",
        "onStats",
        "onStats"
      ])
      const payloadOf = (name: string) => hooks.find(([hook]) => hook === name)?.[1]
      assert.deepInclude(at(payloadOf("onPlayerCreated"), "player"), {
        id: player.id,
        isGuest: true,
        createdAt
      })
      assert.deepStrictEqual(payloadOf("onRoomClosed"), { room: { id, mode: "duel", createdAt } })
      const totals = hooks.flatMap(([hook, payload]) =>
        hook === "onStats" ? [at(payload, "stats", "score")] : []
      )
      assert.deepStrictEqual(totals.toSorted(), [11, 5])
      yield* deploy(target)
      yield* guest(target)
      yield* deliverAll
      assert.strictEqual(callsOf("hook").length, 4)
    })
  )
})
