/** Error codes of sign-in with a provider, and of the identities that a player links. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/** Unlinking would leave the player without a sign-in method. Link another one first. */
export class LastLoginMethod extends coded<LastLoginMethod>()(
  "last_login_method",
  409,
  "This is the player's last sign-in method."
) {}

/** The provider has no credentials in this environment. The operator enters them. */
export class ProviderNotConfigured extends coded<ProviderNotConfigured>()(
  "provider_not_configured",
  409,
  "This sign-in provider has no credentials yet."
) {}

/** The provider is not enabled. The operator adds it to `auth.providers`. */
export class ProviderDisabled extends coded<ProviderDisabled>()(
  "provider_disabled",
  404,
  "This sign-in provider is not enabled."
) {}

/** The identity belongs to another player. Accounts are never merged; offer to sign in as that player. */
export class IdentityAlreadyLinked extends coded<IdentityAlreadyLinked>()(
  "identity_already_linked",
  409,
  "This identity belongs to another player."
) {}

/** The player has no identity of this provider. Offer to link one. */
export class IdentityNotLinked extends coded<IdentityNotLinked>()(
  "identity_not_linked",
  404,
  "The player has no account of this provider linked."
) {}

/** The shared sign-in app of provider `x` is overdue. Continue as a guest. */
export class XSigninUnavailable extends detailed<XSigninUnavailable>()(
  "x_signin_unavailable",
  402,
  "Sign-in with X is not available right now.",
  { continueAsGuest: Schema.Literal(true) }
) {}
