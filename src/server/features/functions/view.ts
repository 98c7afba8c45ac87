/** Responses of Functions: their state, and versions of the code. */
import { DateTime, Effect, Option } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { FunctionsDeployment } from "#rpc/functions/deployment"
import type { FunctionsStatus } from "#rpc/functions/responses"
import type { EnvironmentId } from "#rpc/ids"
import { DeliveryRepository } from "#sql/functions/deliveries"
import {
  FunctionsDeploymentRepository,
  type FunctionsDeploymentRow
} from "#sql/functions/deployments"
import { FunctionsRepository } from "#sql/functions/settings"
import { AppRepository } from "#sql/hosting/apps"
import { Settings } from "#server/platform/settings/settings"
import { labelOf } from "../hosting/addresses.ts"
import { FunctionsRuntime } from "./runtime.ts"
import type { FunctionResources } from "./stored-data.ts"

/** Returns the address of the live version: `{base_url}/fn/<label>`. */
export const makeUrlOf = Effect.gen(function* () {
  const apps = yield* AppRepository
  const { baseUrl } = yield* Settings
  return Effect.fnUntraced(function* ({ environmentId, name }: EnvironmentCaller) {
    const { slug } = yield* Effect.orDie(Effect.fromOption(yield* apps.byId(environmentId)))
    return `${baseUrl}/fn/${labelOf(slug, name)}`
  })
})

export const deploymentView = (
  { activatedAt, createdAt, hooks: _hooks, ...row }: FunctionsDeploymentRow,
  url: string,
  secrets: ReadonlySet<string>
): FunctionsDeployment => ({
  ...row,
  url,
  unsetSecrets: row.bindings.flatMap(({ name, type }) =>
    type === "secret" && !secrets.has(name) ? [name] : []
  ),
  createdAt: DateTime.formatIso(createdAt),
  activatedAt: activatedAt === null ? null : DateTime.formatIso(activatedAt)
})

const none: FunctionResources = { databases: [], kv: [], files: [], queues: [] }

/** Merges resources that have data with those of the live version that have none yet. */
const withDeclared = (
  stored: ReadonlyArray<{ readonly binding: string; readonly sizeBytes: number }>,
  declared: ReadonlyArray<string>
) => {
  const known = new Set(stored.map(({ binding }) => binding))
  return [
    ...stored,
    ...declared.flatMap((binding) => (known.has(binding) ? [] : [{ binding, sizeBytes: 0 }]))
  ]
    .map((one) => ({ ...one, bound: declared.includes(one.binding) }))
    .toSorted((a, b) => (a.binding < b.binding ? -1 : 1))
}

const makeResources = Effect.gen(function* () {
  const deliveries = yield* DeliveryRepository
  const runtime = yield* FunctionsRuntime
  return Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    bindings: FunctionsDeploymentRow["bindings"]
  ) {
    const stored =
      runtime.unavailable === undefined
        ? yield* Effect.catchTag(runtime.resources(environmentId), "feature_unavailable", () =>
            Effect.succeed(none)
          )
        : none
    const waiting = yield* deliveries.waiting(environmentId)
    const named = (kind: FunctionsDeploymentRow["bindings"][number]["type"]) =>
      bindings.flatMap(({ name, type }) => (type === kind ? [name] : []))
    const counts = new Map(named("queue").map((queue) => [queue, 0]))
    for (const { count, target } of waiting) counts.set(target, count)
    return {
      databases: withDeclared(stored.databases, named("db")),
      kv: withDeclared(stored.kv, named("kv")),
      files: withDeclared(stored.files, named("files")),
      queues: [...counts].map(([binding, messages]) => ({ binding, messages })),
      usage: stored.usage ?? null
    }
  })
})

/** Reads the state of an environment. */
export const makeStatus = Effect.gen(function* () {
  const deployments = yield* FunctionsDeploymentRepository
  const repository = yield* FunctionsRepository
  const resourcesOf = yield* makeResources
  const urlOf = yield* makeUrlOf
  const { cpuMillisMax } = (yield* Settings).functions
  return Effect.fn("Functions.status")(function* (environment: EnvironmentCaller) {
    const { environmentId } = environment
    const { cpuMs, enabled, liveVersion, subRequests, suspendedReason } =
      yield* repository.find(environmentId)
    const live =
      liveVersion === null
        ? undefined
        : Option.getOrUndefined(yield* deployments.find({ environmentId, version: liveVersion }))
    const secrets = yield* deployments.secretNames(environmentId)
    const bindings = live?.bindings ?? []
    const { usage, ...resources } = yield* resourcesOf(environmentId, bindings)
    const status: FunctionsStatus = {
      enabled,
      suspended: suspendedReason !== null,
      suspendedReason,
      limits: { cpuMs: Math.min(cpuMs, cpuMillisMax), cpuMsMax: cpuMillisMax, subRequests },
      deployed: live !== undefined,
      version: live?.version ?? null,
      url: yield* urlOf(environment),
      crons: live?.crons ?? [],
      durableObjects: bindings.flatMap((binding) =>
        binding.type === "durableObject" && binding.class !== undefined ? [binding.class] : []
      ),
      resources,
      usage,
      secrets: secrets.map(({ name }) => name)
    }
    return status
  })
})
