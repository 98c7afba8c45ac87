/**
 * Functions of environments: their switch and limits. A change commits with its audit entry.
 * Then the runtime applies the new state, wherever the environment runs.
 */
import { Context, Effect, Layer } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { ChangedLimits } from "#rpc/functions/responses"
import type { EnvironmentId } from "#rpc/ids"
import { DeliveryRepository } from "#sql/functions/deliveries"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { FunctionsRepository, type FunctionsSettings } from "#sql/functions/settings"
import { makeTransaction } from "#server/platform/database"
import { invalidField } from "#server/platform/invalid-request"
import { Settings } from "#server/platform/settings/settings"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { Billing } from "../money/billing.ts"
import { FunctionsChanges } from "./changes.ts"
import { makeSecrets } from "./function-secrets.ts"
import { unavailableFor } from "./gate.ts"
import { FunctionsRuntime } from "./runtime.ts"
import { makeStatus } from "./view.ts"

/** Functions of environments. */
export class Functions extends Context.Service<Functions>()(
  "server/features/functions/service/Functions",
  {
    make: Effect.gen(function* () {
      const status = yield* makeStatus
      const change = yield* makeChange
      const secrets = yield* makeSecrets
      const billing = yield* Billing
      const { unavailable } = yield* FunctionsRuntime
      const checkLimits = yield* makeCheckLimits
      return {
        status,
        enable: Effect.fn("Functions.enable")(function* (
          environment: EnvironmentCaller,
          changed: ChangedLimits
        ) {
          if (unavailable !== undefined) return yield* unavailableFor(unavailable)
          yield* checkLimits(changed)
          yield* billing.requirePrepaid(environment.projectId)
          yield* change(environment, "functions.enable", (before) => ({
            ...before,
            ...changed,
            enabled: true
          }))
          return yield* status(environment)
        }),
        /** Disables Functions. Keeps code and data. */
        disable: Effect.fn("Functions.disable")(function* (environment: EnvironmentCaller) {
          yield* change(environment, "functions.disable", (before) => ({
            ...before,
            enabled: false
          }))
          return yield* status(environment)
        }),
        setLimits: Effect.fn("Functions.setLimits")(function* (
          environment: EnvironmentCaller,
          changed: ChangedLimits
        ) {
          yield* checkLimits(changed)
          yield* change(environment, "functions.limits", (before) => ({ ...before, ...changed }))
          return yield* status(environment)
        }),
        /** Deletes the code; `purge` also deletes data and secrets. */
        remove: yield* makeRemove,
        ...secrets
      }
    })
  }
) {
  static readonly layer = Layer.effect(Functions, this.make)
}

/** Refuses a limit that the operator would not grant. */
const makeCheckLimits = Effect.gen(function* () {
  const { cpuMillisMax } = (yield* Settings).functions
  return ({ cpuMs = 0 }: ChangedLimits) =>
    cpuMs <= cpuMillisMax
      ? Effect.void
      : invalidField("cpuMs", `Expected at most ${cpuMillisMax}: the operator allows no more here`)
})

/** Audit event of an environment's Functions. */
const eventOf = (
  action: AuditEvent["action"],
  environmentId: EnvironmentId,
  details: AuditEvent["details"]
): AuditEvent => ({
  action,
  target: { kind: "environment", id: environmentId },
  details: details ?? {}
})

type Switches = Pick<FunctionsSettings, "cpuMs" | "enabled" | "subRequests">

const isSame = (a: Switches, b: Switches): boolean =>
  a.enabled === b.enabled && a.cpuMs === b.cpuMs && a.subRequests === b.subRequests

/** Limit in the audit log: its value, or both values if it changed. */
const changeOf = (before: number, after: number) => (before === after ? after : { before, after })

/** Changes the switch and the limits. Writes no entry if nothing changes. */
const makeChange = Effect.gen(function* () {
  const audit = yield* Audit
  const repository = yield* FunctionsRepository
  const changes = yield* FunctionsChanges
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (
    environment: EnvironmentCaller,
    action: AuditEvent["action"],
    next: (before: FunctionsSettings) => Switches
  ) {
    const { environmentId } = environment
    const hasChanged = yield* transaction(
      Effect.gen(function* () {
        const before = yield* repository.lock(environmentId)
        const { cpuMs, enabled, subRequests } = next(before)
        if (isSame(before, { cpuMs, enabled, subRequests })) return false
        yield* repository.change({ environmentId, cpuMs, enabled, subRequests })
        yield* changes.publish(environmentId)
        const details = {
          cpuMs: changeOf(before.cpuMs, cpuMs),
          subRequests: changeOf(before.subRequests, subRequests)
        }
        yield* audit.record(environment, eventOf(action, environmentId, details))
        return true
      })
    )
    if (hasChanged) yield* changes.awaitApplied(environmentId)
  })
})

const makeRemove = Effect.gen(function* () {
  const audit = yield* Audit
  const changes = yield* FunctionsChanges
  const deliveries = yield* DeliveryRepository
  const deployments = yield* FunctionsDeploymentRepository
  const repository = yield* FunctionsRepository
  const runtime = yield* FunctionsRuntime
  const transaction = yield* makeTransaction
  return Effect.fn("Functions.remove")(function* (environment: EnvironmentCaller, purge: boolean) {
    const { environmentId } = environment
    yield* transaction(
      Effect.gen(function* () {
        const { liveVersion } = yield* repository.lock(environmentId)
        yield* repository.setLive({ environmentId, version: null, hooks: [] }, [])
        yield* deployments.deleteAll(environmentId)
        if (purge) {
          yield* deployments.deleteSecrets(environmentId)
          yield* deliveries.clear(environmentId)
        }
        yield* changes.publish(environmentId)
        yield* audit.record(
          environment,
          eventOf(purge ? "functions.purge" : "functions.delete", environmentId, {
            version: liveVersion
          })
        )
      })
    )
    yield* changes.awaitApplied(environmentId)
    if (purge) {
      yield* runtime.purge(environmentId)
      yield* deployments.forgetResources(environmentId)
    }
  })
})
