/** Readiness of this process, as `GET /readyz` reports it. */
import { Context, Effect, Layer } from "effect"

/** Conditions for readiness besides the database. */
export class Readiness extends Context.Service<
  Readiness,
  {
    /** Whether this process owns shards. */
    readonly shards: Effect.Effect<boolean>
    /** Whether the process is shutting down and takes no new work. */
    readonly draining: Effect.Effect<boolean>
  }
>()("server/cluster/readiness/Readiness") {
  /** Readiness of a process without a cluster, which is always ready. */
  static readonly always = Layer.succeed(
    Readiness,
    Readiness.of({ shards: Effect.succeed(true), draining: Effect.succeed(false) })
  )
}
