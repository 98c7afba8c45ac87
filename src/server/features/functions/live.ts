/** The runtime of functions over all runners. */
import { Effect, Layer, Schema } from "effect"
import { FeatureUnavailable, FunctionInvalid, Unavailable } from "#rpc/errors/codes"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { callError } from "./host/failures.ts"
import { FunctionHosts, type LocalFunctions } from "./host/local.ts"
import type { FunctionBundle } from "./program.ts"
import { answers, type Failure, type Operation } from "./runners/operations.ts"
import { FunctionRoutes } from "./runners/routes.ts"
import { FunctionsRuntime } from "./runtime.ts"
import { FunctionSnapshots } from "./snapshots.ts"
import { validate } from "./validate.ts"

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
    settled: () => Effect.void,
    stop: () => Effect.void,
    purge: remove
  })
}

const makeRuntime = Effect.fnUntraced(function* ({ context, hosts }: LocalFunctions) {
  const routes = yield* FunctionRoutes
  /** Each operation fails in its own ways only. */
  const operate = <E>(environmentId: EnvironmentId, operation: Operation) =>
    Effect.mapError(
      routes.operate(environmentId, operation),
      (failure: Failure) => failure as unknown as E
    )
  const answer = <A, E>(
    schema: Schema.Codec<A, unknown>,
    environmentId: EnvironmentId,
    operation: Operation
  ): Effect.Effect<A, E> =>
    Effect.flatMap(operate<E>(environmentId, operation), (value) =>
      Effect.orDie(Schema.decodeUnknownEffect(schema)(value))
    )
  return FunctionsRuntime.of({
    unavailable: undefined,
    validate: (bundle) => validated(context, bundle),
    changed: (environmentId) => Effect.promise(async () => hosts.known(environmentId)?.reload()),
    settled: (environmentId) => Effect.ignore(routes.settled(environmentId)),
    query: (environmentId, binding, sql, params) =>
      answer(answers.query, environmentId, { kind: "query", binding, sql, params }),
    migrate: (environmentId, binding, migrations) =>
      answer(answers.migrate, environmentId, { kind: "migrate", binding, migrations }),
    scheduled: (environmentId, cron, scheduledTime) =>
      Effect.asVoid(operate(environmentId, { kind: "scheduled", cron, scheduledTime })),
    deliver: (environmentId, queue, messages) =>
      answer(answers.deliver, environmentId, { kind: "deliver", queue, messages }),
    hook: (environmentId, hook, payload) =>
      Effect.asVoid(operate(environmentId, { kind: "hook", hook, payload: jsonOf(payload) })),
    resources: (environmentId) => answer(answers.resources, environmentId, { kind: "resources" }),
    stop: (environmentId) => Effect.promise(() => hosts.close(environmentId, limits.drainMillis)),
    purge: (environmentId) => Effect.asVoid(operate(environmentId, { kind: "purge" }))
  })
})

const jsonOf = Schema.decodeUnknownSync(Schema.Json)

const isStartFailure = Schema.is(Schema.Union([FunctionInvalid, FeatureUnavailable, Unavailable]))

const validated = (context: LocalFunctions["context"], bundle: FunctionBundle) =>
  Effect.catch(
    Effect.tryPromise({ try: () => validate(context, bundle), catch: (error) => error }),
    (error) => {
      if (isStartFailure(error)) return Effect.fail(error)
      return callError(error) === undefined ? Effect.die(error) : Effect.fail(new Unavailable())
    }
  )

export const FunctionsRuntimeLive = Layer.effect(
  FunctionsRuntime,
  Effect.gen(function* () {
    const { local } = yield* FunctionHosts
    return typeof local === "string"
      ? unavailableRuntime(local, yield* FunctionSnapshots)
      : yield* makeRuntime(local)
  })
)
