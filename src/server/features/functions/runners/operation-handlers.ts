/** Runs operations on the host of an environment on this runner. */
import { Effect, Schema } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { GateClosed } from "#server/platform/workerd/supervisor"
import { isHostStopped } from "../host/exchange.ts"
import { callError } from "../host/failures.ts"
import type { FunctionHost } from "../host/host.ts"
import type { LocalFunctions } from "../host/local.ts"
import {
  deleteEntries,
  deliver,
  entries,
  hook,
  migrate,
  query,
  scheduled
} from "../host/operations.ts"
import { resourcesOf } from "../host/resources.ts"
import { FunctionSnapshots } from "../snapshots.ts"
import { FunctionsQueues, FunctionsSource } from "../control-plane.ts"
import { Failure, type Operation } from "./operations.ts"

/** Error: the environment left this runner before the operation began. */
export class HostStopped {
  readonly _tag = "Left"
}

const isFailure = Schema.is(Failure)

/** Runs a call of a host. */
const attempt = (run: () => Promise<unknown>): Effect.Effect<unknown, Failure | HostStopped> =>
  Effect.catch(
    Effect.tryPromise({ try: run, catch: (error) => error }),
    (error): Effect.Effect<never, Failure | HostStopped> => {
      if (isHostStopped(error)) return Effect.fail(new HostStopped())
      const known = isFailure(error) ? error : callError(error)
      return known === undefined ? Effect.die(error) : Effect.fail(known)
    }
  )

const callOf = (host: FunctionHost, operation: Operation): Promise<unknown> | undefined => {
  switch (operation.kind) {
    case "query":
      return query(host, operation.binding, operation.sql, operation.params)
    case "migrate":
      return migrate(host, operation.binding, operation.migrations)
    case "entries":
      return entries(host, operation.store, operation.page)
    case "deleteEntries":
      return deleteEntries(host, operation.store, operation.selection)
    case "scheduled":
      return scheduled(host, operation.cron, operation.scheduledTime)
    case "deliver":
      return deliver(host, operation.queue, operation.messages)
    case "hook":
      return hook(host, operation.hook, operation.payload)
    case "settle":
      return host.supervisor.settled
    default:
      return undefined
  }
}

/** Returns a function that runs an operation on a host of this runner. */
export const makePerform = Effect.fnUntraced(function* ({ context, hosts }: LocalFunctions) {
  const queues = yield* FunctionsQueues
  const snapshots = yield* FunctionSnapshots
  const source = yield* FunctionsSource
  const resources = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const stored = yield* source.resources(environmentId)
    const waiting = yield* queues.waiting(environmentId)
    const sizes = resourcesOf(context.directories.dataOf(environmentId), stored, waiting)
    const usage = hosts.known(environmentId)?.standing.usage
    return usage === undefined ? sizes : { ...sizes, usage }
  })
  const purge = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    yield* Effect.promise(() => hosts.close(environmentId, 0))
    yield* Effect.try({
      try: () => context.directories.remove(environmentId),
      catch: () => new Unavailable()
    })
    yield* snapshots.remove(environmentId)
    yield* queues.clear(environmentId)
  })
  return (
    environmentId: EnvironmentId,
    host: () => FunctionHost | undefined,
    operation: Operation
  ): Effect.Effect<unknown, Failure | HostStopped> => {
    if (operation.kind === "resources") return resources(environmentId)
    if (operation.kind === "purge") return purge(environmentId)
    return attempt(async () => {
      const running = host()
      if (running === undefined) throw new GateClosed({ reason: "stopped" })
      return callOf(running, operation)
    })
  }
})
