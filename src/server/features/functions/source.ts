/** Source of the runtime: the live version of an environment, with its secrets and limits. */
import { Effect, Layer, Option, Redacted } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { FunctionsRepository } from "#sql/functions/settings"
import { Invalidation } from "#server/platform/invalidation"
import { Secrets } from "#server/platform/secrets"
import { makeTransaction } from "#server/platform/database"
import { Audit } from "../audit/service.ts"
import { CurrentActor } from "#rpc/auth"
import { unpackBundle } from "./bundles.ts"
import { secretPurpose } from "./function-secrets.ts"
import type { FunctionProgram, FunctionState } from "./program.ts"
import { FunctionsSource } from "./control-plane.ts"

const makeOpenSecrets = Effect.gen(function* () {
  const deployments = yield* FunctionsDeploymentRepository
  const secrets = yield* Secrets
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, names: ReadonlySet<string>) {
    const rows = yield* deployments.sealedSecrets(environmentId)
    const opened = yield* Effect.forEach(
      rows.filter(({ name }) => names.has(name)),
      ({ name, sealed }) =>
        Effect.map(
          Effect.orDie(secrets.open(sealed, secretPurpose(environmentId, name))),
          (value): [string, Redacted.Redacted] => [name, Redacted.make(value)]
        )
    )
    return Object.fromEntries(opened)
  })
})

const makeLoad = Effect.gen(function* () {
  const deployments = yield* FunctionsDeploymentRepository
  const openSecrets = yield* makeOpenSecrets
  return Effect.fn("FunctionsSource.load")(function* (
    environmentId: EnvironmentId
  ): Effect.fn.Return<FunctionState> {
    const found = Option.getOrUndefined(yield* deployments.live(environmentId))
    if (found === undefined || !found.enabled) return { kind: "absent" }
    if (found.suspendedReason !== null) return { kind: "suspended" }
    const bundle = yield* unpackBundle(found)
    const declared = found.bindings.flatMap(({ name, type }) => (type === "secret" ? [name] : []))
    const program: FunctionProgram = {
      ...bundle,
      version: found.version,
      secrets: yield* openSecrets(environmentId, new Set(declared)),
      limits: { cpuMs: found.cpuMs, subRequests: found.subRequests },
      isDevelopment: found.name === "development"
    }
    return { kind: "live", program }
  })
})

const runtimeActor = { kind: "system", id: "functions", name: "functions" } as const

export const FunctionsSourceLive = Layer.effect(
  FunctionsSource,
  Effect.gen(function* () {
    const audit = yield* Audit
    const invalidation = yield* Invalidation
    const repository = yield* FunctionsRepository
    const transaction = yield* makeTransaction
    const load = yield* makeLoad
    const suspend = Effect.fn("FunctionsSource.suspend")(
      function* (environmentId: EnvironmentId) {
        const found = yield* repository.setSuspended({ environmentId, reason: "abuse" })
        if (Option.isNone(found)) return
        // The runtime of this node knows already; the others hear of it.
        yield* invalidation.publish({ kind: "functions", id: environmentId })
        yield* audit.record(found.value, {
          action: "functions.suspend",
          target: { kind: "environment", id: environmentId },
          details: { reason: "abuse" }
        })
      },
      Effect.provideService(CurrentActor, runtimeActor)
    )
    const { resources } = yield* FunctionsDeploymentRepository
    return FunctionsSource.of({
      load,
      resources,
      suspend: (environmentId) => transaction(suspend(environmentId))
    })
  })
)
