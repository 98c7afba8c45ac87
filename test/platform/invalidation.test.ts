/** Changes that one node publishes and all nodes apply. */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { Invalidation } from "#server/platform/invalidation"
import { coreOfNode, SharedDatabase } from "../support/http-stack.ts"

const Node = coreOfNode({}).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Node)("cache invalidation", (it) => {
  it.effect("applies every change although a listener fails", () =>
    Effect.gen(function* () {
      const invalidation = yield* Invalidation
      const second = yield* Deferred.make<void>()
      yield* invalidation.subscribe(({ id }) =>
        id === "first" ? Effect.die("a defect of one listener") : Effect.void
      )
      const applied: Array<string> = []
      yield* invalidation.subscribe(({ id, kind }) => {
        if (kind === "config") applied.push(id)
        return id === "second" ? Effect.asVoid(Deferred.succeed(second, undefined)) : Effect.void
      })
      yield* invalidation.publish({ kind: "config", id: "first" })
      yield* invalidation.publish({ kind: "config", id: "second" })
      yield* Deferred.await(second)
      assert.deepStrictEqual(applied, ["first", "second"])
    })
  )

  it.effect("acknowledges a request under its name of the next release", () =>
    Effect.gen(function* () {
      const invalidation = yield* Invalidation
      const acknowledged = yield* Deferred.make<void>()
      yield* invalidation.subscribe(({ id, kind }) =>
        kind === "heard" && id === "request"
          ? Effect.asVoid(Deferred.succeed(acknowledged, undefined))
          : Effect.void
      )
      yield* invalidation.publish({ kind: "ackRequest", id: "request" })
      yield* Deferred.await(acknowledged)
    })
  )

  it.effect("counts an acknowledgement under its name of the next release", () =>
    Effect.gen(function* () {
      const invalidation = yield* Invalidation
      const other = yield* PgClient.PgClient
      // A second session, whose acknowledgement the node has to wait for.
      yield* other.listen("svc_invalidation")
      const applied = yield* Deferred.make<void>()
      yield* invalidation.subscribe(({ id, kind }) =>
        kind === "heard"
          ? invalidation.publish({ kind: "ack", id })
          : kind === "ack"
            ? Effect.asVoid(Deferred.succeed(applied, undefined))
            : Effect.void
      )
      const waiting = yield* Effect.forkChild(invalidation.awaitAcknowledgements)
      yield* Deferred.await(applied)
      for (let yields = 0; yields < 100; yields += 1) yield* Effect.yieldNow
      // Without the acknowledgement it would wait a second of real time.
      assert.isDefined(waiting.pollUnsafe())
    })
  )
})
