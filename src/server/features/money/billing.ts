/**
 * Effects of unpaid usage on a project. The payer of a project is its first member. Enabling functions
 * needs prepaid credit. The service suspends functions after 72 hours of debt, until payment.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { PrepaidRequired } from "#rpc/errors/codes"
import type { ProjectId } from "#rpc/ids"
import { secondsPerHour } from "#rpc/units"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { Settings } from "#server/platform/settings/settings"
import { Ledger } from "./ledger.ts"

/** Functions are suspended when money has been owed for this long. */
const owedSeconds = 72 * secondsPerHour

export class Billing extends Context.Service<
  Billing,
  {
    /** Fails with `prepaid_required` unless the payer has credit and owes nothing. */
    readonly requirePrepaid: (projectId: ProjectId) => Effect.Effect<void, PrepaidRequired>
    /** Whether the payer has owed money for so long that paid services stop. */
    readonly isSuspendedForBalance: (projectId: ProjectId) => Effect.Effect<boolean>
  }
>()("server/features/money/billing/Billing") {
  static readonly layer = Layer.effect(
    Billing,
    Effect.gen(function* () {
      const { enabled } = (yield* Settings).money
      if (!enabled) {
        return Billing.of({
          requirePrepaid: () => Effect.void,
          isSuspendedForBalance: () => Effect.succeed(false)
        })
      }
      const ledger = yield* Ledger
      const postings = yield* LedgerRepository
      const metering = yield* MeteringRepository
      return Billing.of({
        requirePrepaid: Effect.fn("Billing.requirePrepaid")(function* (projectId) {
          const payer = Option.getOrUndefined(yield* metering.payerOf(projectId))
          if (payer === undefined) return yield* new PrepaidRequired()
          const { invite, owed, prepaid } = yield* ledger.balances(payer)
          if (owed < 0n || prepaid + invite <= 0n) return yield* new PrepaidRequired()
        }),
        isSuspendedForBalance: Effect.fn("Billing.isSuspendedForBalance")(function* (projectId) {
          const payer = yield* metering.payerOf(projectId)
          if (Option.isNone(payer)) return false
          const since = yield* postings.owedSince(payer.value)
          if (Option.isNone(since)) return false
          const now = yield* DateTime.now
          const end = DateTime.add(since.value, { seconds: owedSeconds })
          return DateTime.isLessThanOrEqualTo(end, now)
        })
      })
    })
  )
}

/** Billing and its ledger. */
export const BillingLive = Billing.layer.pipe(Layer.provideMerge(Ledger.layer))
