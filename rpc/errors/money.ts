/** Error codes of prepaid money. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/** The amount of a checkout is out of range. Send an amount between `min` and `max`. */
export class InvalidAmount extends detailed<InvalidAmount>()(
  "invalid_amount",
  400,
  "The amount is out of range.",
  { min: Schema.Int, max: Schema.Int, unit: Schema.Literal("cents") }
) {}

/** This deployment takes no payments, or the payment provider does not respond. */
export class PaymentsUnavailable extends coded<PaymentsUnavailable>()(
  "payments_unavailable",
  503,
  "Payments are not available."
) {}

/** Functions need prepaid credit. Add credit and retry. */
export class PrepaidRequired extends coded<PrepaidRequired>()(
  "prepaid_required",
  402,
  "Functions need prepaid credit."
) {}
