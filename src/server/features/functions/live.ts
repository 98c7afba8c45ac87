/** The runtime of functions on this runner. */
import { Effect, Layer } from "effect"
import { FeatureUnavailable, Unavailable } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import { callError } from "./host/failures.ts"
import type { FunctionHost } from "./host/host.ts"
import { FunctionHosts, type LocalFunctions } from "./host/local.ts"
import { deliver, hook, migrate, query, scheduled } from "./host/operations.ts"
import { resourcesOf } from "./host/resources.ts"
import { FunctionsRuntime } from "./runtime.ts"
import { FunctionSnapshots } from "./snapshots.ts"
import { FunctionsQueues, FunctionsSource } from "./surroundings.ts"
import { validate } from "./validate.ts"

/** The error classes that a call may reject with; anything else is a fault of the service. */
const isCoded = (error: unknown): error is { readonly _tag: string; readonly code: string } =>
  typeof error === "object" && error !== null && "_tag" in error && "code" in error

/** Runs a call of a host; `E` are the errors that it throws itself. */
const attempt = <A, E>(run: () => Promise<A>): Effect.Effect<A, E> =>
  Effect.catch(
    Effect.tryPromise({ try: run, catch: (error) => error }),
    (error): Effect.Effect<never, E> => {
      const known = isCoded(error) ? error : callError(error)
      return known === undefined ? Effect.die(error) : Effect.fail(known as E)
    }
  )

const unavailableRuntime = (
  reason: string,
  { remove }: FunctionSnapshots["Service"]
): FunctionsRuntime["Service"] => {
  const refuse = () =>
    Effect.fail(
      new FeatureUnavailable({
        message: `Functions do not run here: ${reason}`,
        details: { features: ["functions"] }
      })
    )
  return FunctionsRuntime.of({
    unavailable: reason,
    validate: refuse,
    query: refuse,
    migrate: refuse,
    scheduled: refuse,
    deliver: refuse,
    hook: refuse,
    resources: refuse,
    changed: () => Effect.void,
    stop: () => Effect.void,
    purge: remove
  })
}

const makeRuntime = Effect.fnUntraced(function* ({ context, hosts }: LocalFunctions) {
  const queues = yield* FunctionsQueues
  const snapshots = yield* FunctionSnapshots
  const source = yield* FunctionsSource
  const host = (environmentId: EnvironmentId): FunctionHost => hosts.of(environmentId)
  return FunctionsRuntime.of({
    unavailable: undefined,
    validate: (bundle) => attempt(() => validate(context, bundle)),
    changed: (environmentId) => Effect.promise(async () => hosts.known(environmentId)?.reload()),
    query: (environmentId, binding, sql, params) =>
      attempt(() => query(host(environmentId), binding, sql, params)),
    migrate: (environmentId, binding, migrations) =>
      attempt(() => migrate(host(environmentId), binding, migrations)),
    scheduled: (environmentId, cron, scheduledTime) =>
      attempt(() => scheduled(host(environmentId), cron, scheduledTime)),
    deliver: (environmentId, queue, messages) =>
      attempt(() => deliver(host(environmentId), queue, messages)),
    hook: (environmentId, name, payload) => attempt(() => hook(host(environmentId), name, payload)),
    resources: Effect.fn("FunctionsRuntime.resources")(function* (environmentId) {
      const state = yield* source.load(environmentId)
      const bindings = state.kind === "live" ? state.program.bindings : []
      const waiting = yield* queues.waiting(environmentId)
      return resourcesOf(context.places.dataOf(environmentId), bindings, waiting)
    }),
    stop: (environmentId) => Effect.promise(() => hosts.close(environmentId, limits.drainMillis)),
    purge: Effect.fn("FunctionsRuntime.purge")(function* (environmentId) {
      yield* Effect.promise(() => hosts.close(environmentId, 0))
      yield* Effect.try({
        try: () => context.places.remove(environmentId),
        catch: () => new Unavailable()
      })
      yield* snapshots.remove(environmentId)
      yield* queues.clear(environmentId)
    })
  })
})

export const FunctionsRuntimeLive = Layer.effect(
  FunctionsRuntime,
  Effect.gen(function* () {
    const { local } = yield* FunctionHosts
    return typeof local === "string"
      ? unavailableRuntime(local, yield* FunctionSnapshots)
      : yield* makeRuntime(local)
  })
)
