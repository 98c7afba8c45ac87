/** Changes that one node publishes and all nodes apply. */
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
})
