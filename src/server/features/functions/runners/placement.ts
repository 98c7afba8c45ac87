/** Where the functions of an environment run: here, or on another runner. */
import { Context, Effect, Layer } from "effect"
import { FeatureUnavailable, Unavailable } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { functionLeases as limits } from "#rpc/function-runtime-limits"
import { RunnerStreams } from "#server/cluster/runner-port"
import type { FunctionHost } from "../host/host.ts"
import { FunctionHosts, type LocalFunctions } from "../host/local.ts"
import { makeLeases, type Placed } from "./leases.ts"

export class FunctionPlacement extends Context.Service<
  FunctionPlacement,
  {
    /** Where an environment runs; takes it over if it runs nowhere. */
    readonly place: (
      environmentId: EnvironmentId
    ) => Effect.Effect<Placed, FeatureUnavailable | Unavailable>
    /** The place did not take a call: the next {@link place} looks again, a moment later. */
    readonly moved: (environmentId: EnvironmentId, placed: Placed) => Effect.Effect<void>
    /** The host, unless another runner may have the environment. */
    readonly here: (environmentId: EnvironmentId) => FunctionHost | undefined
    /** The address of the other runner that has the environment, if one has. */
    readonly elsewhere: (environmentId: EnvironmentId) => Effect.Effect<string | undefined>
  }
>()("server/features/functions/runners/placement/FunctionPlacement") {
  static readonly layer = Layer.effect(
    FunctionPlacement,
    Effect.gen(function* () {
      const { local } = yield* FunctionHosts
      const streams = yield* RunnerStreams
      if (typeof local === "string") return nowhere(local)
      if (streams === undefined) return alone(local)
      return yield* makeLeases(local, streams.self)
    })
  )
}

const nowhere = (reason: string) => {
  const message = `Functions do not run here: ${reason}`
  return FunctionPlacement.of({
    place: () =>
      Effect.fail(new FeatureUnavailable({ message, details: { features: ["functions"] } })),
    moved: () => Effect.void,
    here: () => undefined,
    elsewhere: () => Effect.undefined
  })
}

/** A single process has all environments. */
const alone = ({ hosts }: LocalFunctions) =>
  FunctionPlacement.of({
    place: (environmentId) => Effect.succeed({ kind: "here", host: () => hosts.of(environmentId) }),
    moved: () => Effect.sleep(limits.retryMillis),
    here: (environmentId) => hosts.of(environmentId),
    elsewhere: () => Effect.undefined
  })
