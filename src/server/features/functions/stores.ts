/** Check that the live version has a database, key-value storage or store of files. */
import { Effect, Option } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import { FunctionsSuspended, NotFound } from "#rpc/errors/codes"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { FunctionsRepository } from "#sql/functions/settings"
import type { StoredResource } from "./program.ts"

/** Fails unless the live version binds a store of this name and type. */
export const makeRequireStore = Effect.gen(function* () {
  const deployments = yield* FunctionsDeploymentRepository
  const repository = yield* FunctionsRepository
  return Effect.fnUntraced(function* (
    { environmentId }: EnvironmentCaller,
    binding: string,
    its: StoredResource["type"]
  ) {
    const { liveVersion, suspendedReason } = yield* repository.find(environmentId)
    if (liveVersion === null) return yield* new NotFound()
    const live = yield* deployments.find({ environmentId, version: liveVersion })
    const isBound = Option.exists(live, ({ bindings }) =>
      bindings.some(({ name, type }) => type === its && name === binding)
    )
    if (!isBound) return yield* new NotFound()
    if (suspendedReason !== null) return yield* new FunctionsSuspended()
  })
})

export type RequireStore = Effect.Success<typeof makeRequireStore>
