/**
 * Suspends the functions of projects that have owed money for too long, and resumes them after payment.
 * A suspension by the operator stays.
 */
import { Effect, Layer, Schedule } from "effect"
import { CurrentActor } from "#rpc/auth"
import type { ProjectId } from "#rpc/ids"
import { FunctionsRepository } from "#sql/functions/settings"
import { makeTransaction } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { Audit } from "../audit/service.ts"
import { Billing } from "../money/billing.ts"
import { FunctionsChanges } from "./changes.ts"

const every = "1 minute"

const actor = { kind: "system", id: "billing", name: "billing" } as const

/** Compares the suspension of each environment with the balance of its project. */
export const makeBalanceCheck = Effect.gen(function* () {
  const audit = yield* Audit
  const billing = yield* Billing
  const changes = yield* FunctionsChanges
  const repository = yield* FunctionsRepository
  const transaction = yield* makeTransaction
  return Effect.gen(function* () {
    const owing = new Map<ProjectId, boolean>()
    for (const environment of yield* repository.enabled) {
      const { environmentId, projectId, suspendedReason } = environment
      if (suspendedReason === "abuse") continue
      const owes = owing.get(projectId) ?? (yield* billing.isSuspendedForBalance(projectId))
      owing.set(projectId, owes)
      if (owes === (suspendedReason === "balance")) continue
      yield* transaction(
        Effect.gen(function* () {
          yield* repository.setSuspended({ environmentId, reason: owes ? "balance" : null })
          yield* changes.publish(environmentId)
          yield* audit.record(environment, {
            action: owes ? "functions.suspend" : "functions.resume",
            target: { kind: "environment", id: environmentId }
          })
        })
      ).pipe(Effect.provideService(CurrentActor, actor))
    }
  })
})

/** Checks balances every minute. Without billing no project owes money, and no check runs. */
export const FunctionsBalance = Layer.effectDiscard(
  Effect.gen(function* () {
    if (!(yield* Settings).money.enabled) return
    const check = yield* makeBalanceCheck
    yield* check.pipe(
      Effect.tapDefect((defect) =>
        Effect.logWarning("Failed to check the balances of developers", defect)
      ),
      Effect.exit,
      Effect.repeat(Schedule.spaced(every)),
      Effect.forkScoped
    )
  })
)
