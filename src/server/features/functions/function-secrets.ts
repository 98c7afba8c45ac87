/**
 * Secrets of functions: sealed values that code reads as bindings. A change commits with its audit entry;
 * then the runtime applies it.
 */
import { DateTime, Effect } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { secretNameIssue } from "#rpc/functions/issues"
import { functions } from "#rpc/functions/limits"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { FunctionsRepository } from "#sql/functions/settings"
import { makeTransaction } from "#server/platform/database"
import { invalidField } from "#server/platform/invalid-request"
import { Secrets } from "#server/platform/secrets"
import { Audit } from "../audit/service.ts"
import { FunctionsChanges } from "./changes.ts"

/** Encryption purpose of a secret. It binds the secret to its environment and name. */
export const secretPurpose = (environmentId: string, name: string): string =>
  `function-secret/${environmentId}/${name}`

/** Lists, stores and deletes the secrets of an environment's functions. */
export const makeSecrets = Effect.gen(function* () {
  const audit = yield* Audit
  const changes = yield* FunctionsChanges
  const deployments = yield* FunctionsDeploymentRepository
  const repository = yield* FunctionsRepository
  const { seal } = yield* Secrets
  const transaction = yield* makeTransaction
  const targetOf = (name: string) => ({ kind: "functionSecret", id: name })
  return {
    secrets: Effect.fn("Functions.secrets")(function* ({ environmentId }: EnvironmentCaller) {
      const rows = yield* deployments.secretNames(environmentId)
      return rows.map(({ name, updatedAt }) => ({
        name,
        updatedAt: DateTime.formatIso(updatedAt)
      }))
    }),
    putSecret: Effect.fn("Functions.putSecret")(function* (
      environment: EnvironmentCaller,
      name: string,
      value: string
    ) {
      const { environmentId } = environment
      const issue = secretNameIssue(name)
      if (issue !== undefined) return yield* invalidField("params.name", issue)
      const sealed = yield* seal(value, secretPurpose(environmentId, name))
      yield* transaction(
        Effect.gen(function* () {
          yield* repository.lock(environmentId)
          const names = yield* deployments.secretNames(environmentId)
          const isNew = !names.some((one) => one.name === name)
          if (isNew && names.length >= functions.secretsMax) {
            const message = `There are ${functions.secretsMax} secrets already: delete one first`
            return yield* invalidField("params.name", message)
          }
          const updatedAt = yield* DateTime.now
          yield* deployments.putSecret({ environmentId, name, sealed, updatedAt })
          const event = { action: "functions.secretPut", target: targetOf(name) } as const
          yield* audit.record(environment, event)
          yield* changes.publish(environmentId)
        })
      )
      yield* changes.awaitApplied(environmentId)
    }),
    deleteSecret: Effect.fn("Functions.deleteSecret")(function* (
      environment: EnvironmentCaller,
      name: string
    ) {
      const { environmentId } = environment
      const isKnown = yield* transaction(
        Effect.gen(function* () {
          if (secretNameIssue(name) !== undefined) return false
          if (!(yield* deployments.deleteSecret({ environmentId, name }))) return false
          const event = { action: "functions.secretDelete", target: targetOf(name) } as const
          yield* audit.record(environment, event)
          yield* changes.publish(environmentId)
          return true
        })
      )
      if (!isKnown) return yield* new NotFound()
      yield* changes.awaitApplied(environmentId)
    })
  }
})
