/** Two runner processes on a database of their own. A start costs seconds: the tests of a file share them. */
import { Context, Effect, Layer } from "effect"
import { TestDatabase } from "#testing/app"
import type { TestTarget } from "#testing/players"
import { type Runner, startCluster } from "#testing/runners"
import { DatabaseLive } from "./service.ts"

export class TwoRunners extends Context.Service<
  TwoRunners,
  {
    readonly databaseUrl: string
    readonly first: Runner
    readonly second: Runner
    /** The seeded environment, on the first runner and on the second. */
    readonly at1: TestTarget
    readonly at2: TestTarget
  }
>()("test/support/two-runners/TwoRunners") {
  static readonly layerWith = (env: Readonly<Record<string, string>> = {}) =>
    Layer.effect(
      TwoRunners,
      Effect.gen(function* () {
        const { url: databaseUrl } = yield* TestDatabase
        const { runners, target } = yield* startCluster({ databaseUrl, size: 2, env })
        const [first, second] = runners
        if (first === undefined || second === undefined) return yield* Effect.die("No cluster")
        const at1 = { ...target, url: first.url }
        const at2 = { ...target, url: second.url }
        return { databaseUrl, first, second, at1, at2 }
      })
    ).pipe(Layer.provide(DatabaseLive))
}
