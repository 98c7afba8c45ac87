/** Whether this process is ready to take requests: `GET /readyz` reports it. */
import { Context, Effect, Layer } from "effect"

/** What readiness depends on beside the database. */
export class Readiness extends Context.Service<
  Readiness,
  {
    /** The shards of the cluster have owners. */
    readonly shards: Effect.Effect<boolean>
    /** The process is on its way out and takes nothing new. */
    readonly draining: Effect.Effect<boolean>
  }
>()("server/cluster/readiness/Readiness") {
  /** For a process without a cluster. */
  static readonly always = Layer.succeed(
    Readiness,
    Readiness.of({ shards: Effect.succeed(true), draining: Effect.succeed(false) })
  )
}
