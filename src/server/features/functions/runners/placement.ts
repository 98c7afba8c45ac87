/** Placement of an environment's functions: on this runner or on another one. */
import { Context, Effect, Layer } from "effect"
import { FeatureUnavailable, Unavailable } from "#rpc/errors/codes"
import { functionLeases } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { RunnerStreams } from "#server/cluster/runner-port"
import type { FunctionHost } from "../host/host.ts"
import { FunctionHosts, type LocalFunctions } from "../host/local.ts"
import { makeLeases, type Placement } from "./leases.ts"

export class FunctionPlacement extends Context.Service<
  FunctionPlacement,
  {
    /** Returns the place of an environment; takes the environment over if no runner has it. */
    readonly place: (
      environmentId: EnvironmentId
    ) => Effect.Effect<Placement, FeatureUnavailable | Unavailable>
    /** Reports that a place did not take a call. The next {@link place} looks again after a moment. */
    readonly moved: (environmentId: EnvironmentId, placement: Placement) => Effect.Effect<void>
    /** Returns the host, unless another runner may have the environment. */
    readonly here: (environmentId: EnvironmentId) => FunctionHost | undefined
    /** Returns the address of the other runner that has the environment, if any. */
    readonly elsewhere: (environmentId: EnvironmentId) => Effect.Effect<string | undefined>
  }
>()("server/features/functions/runners/placement/FunctionPlacement") {
  static readonly layer = Layer.effect(
    FunctionPlacement,
    Effect.gen(function* () {
      const { local } = yield* FunctionHosts
      const streams = yield* RunnerStreams
      if (typeof local === "string") return unavailableHere(local)
      if (streams === undefined) return singleNode(local)
      return yield* makeLeases(local, streams.self)
    })
  )
}

const unavailableHere = (reason: string) => {
  const message = `Functions are unavailable on this runner: ${reason}`
  return FunctionPlacement.of({
    place: () =>
      Effect.fail(new FeatureUnavailable({ message, details: { features: ["functions"] } })),
    moved: () => Effect.void,
    here: () => undefined,
    elsewhere: () => Effect.undefined
  })
}

/** Placement of a single process, which has all environments. */
const singleNode = ({ hosts }: LocalFunctions) =>
  FunctionPlacement.of({
    place: (environmentId) =>
      Effect.succeed({ kind: "local", host: () => hosts.of(environmentId) }),
    moved: () => Effect.sleep(functionLeases.retryMillis),
    here: (environmentId) => hosts.of(environmentId),
    elsewhere: () => Effect.undefined
  })
