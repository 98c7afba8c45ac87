/** Money, as the service composes it. */
import { Layer } from "effect"
import { CheckoutRepository } from "#sql/money/checkouts"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { BillingLive } from "./billing.ts"
import { MoneyHttp } from "./handlers.ts"

export const money = {
  repositories: Layer.mergeAll(
    CheckoutRepository.layer,
    LedgerRepository.layer,
    MeteringRepository.layer
  ),
  services: BillingLive,
  routes: MoneyHttp
}
