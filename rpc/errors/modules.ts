/** Error codes of spec section 7 that belong to single modules. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

// Identity (spec sections 3, 4.1 and 5) ------------------------------------------------------------

/** Unlinking would leave the player without a way to sign in. */
export class LastLoginMethod extends coded<LastLoginMethod>()(
  "last_login_method",
  409,
  "This is the player's last sign-in method."
) {}

/** The provider's credentials have not been entered. */
export class ProviderNotConfigured extends coded<ProviderNotConfigured>()(
  "provider_not_configured",
  409,
  "This sign-in provider has no credentials yet."
) {}

/** The provider is not enabled in `auth.providers`. */
export class ProviderDisabled extends coded<ProviderDisabled>()(
  "provider_disabled",
  404,
  "This sign-in provider is not enabled."
) {}

/** The identity belongs to another player; accounts are never merged. */
export class IdentityAlreadyLinked extends coded<IdentityAlreadyLinked>()(
  "identity_already_linked",
  409,
  "This identity belongs to another player."
) {}

/** Unknown player, or one of another environment. */
export class PlayerNotFound extends coded<PlayerNotFound>()(
  "player_not_found",
  404,
  "There is no such player."
) {}

/** A player may only make the age group stricter. */
export class AgeChangeNotAllowed extends coded<AgeChangeNotAllowed>()(
  "age_change_not_allowed",
  403,
  "A player can only make the age group stricter."
) {}

/** The shared sign-in app of provider x is overdue; go on as a guest. */
export class XSigninUnavailable extends detailed<XSigninUnavailable>()(
  "x_signin_unavailable",
  402,
  "Sign-in with X is not available right now.",
  { continueAsGuest: Schema.Literal(true) }
) {}

// Game data (spec section 4.3) ---------------------------------------------------------------------

/** `ifVersion` is not the stored version; read, merge, write again. */
export class VersionConflict extends detailed<VersionConflict>()(
  "version_conflict",
  409,
  "The save has changed since you read it.",
  { currentVersion: Schema.Finite }
) {}

/** The player has no save of this key. */
export class SaveNotFound extends coded<SaveNotFound>()(
  "save_not_found",
  404,
  "There is no such save."
) {}

/** The save is over the size limit. `size` and `limit` are bytes. */
export class SaveTooLarge extends detailed<SaveTooLarge>()(
  "save_too_large",
  413,
  "The save is too large.",
  { size: Schema.Finite, limit: Schema.Finite }
) {}

/** The player has as many saves as the limit allows. */
export class TooManySaves extends detailed<TooManySaves>()(
  "too_many_saves",
  409,
  "The player has too many saves.",
  { limit: Schema.Finite }
) {}

// Share, hosting, voice, channels (spec sections 4.5 to 4.8) ---------------------------------------

/** The share tool is off. */
export class ShareImagesDisabled extends coded<ShareImagesDisabled>()(
  "share_images_disabled",
  404,
  "Share images are turned off."
) {}

/** The share tool is off. */
export class ShareTagsDisabled extends coded<ShareTagsDisabled>()(
  "share_tags_disabled",
  404,
  "Share tags are turned off."
) {}

/** The share tool is off. */
export class ShareLinksDisabled extends coded<ShareLinksDisabled>()(
  "share_links_disabled",
  404,
  "Share links are turned off."
) {}

/** The share tool is off. */
export class ShareTrackingDisabled extends coded<ShareTrackingDisabled>()(
  "share_tracking_disabled",
  404,
  "Share tracking is turned off."
) {}

/** The share tool is off. */
export class ShareInAppBrowserDisabled extends coded<ShareInAppBrowserDisabled>()(
  "share_inAppBrowser_disabled",
  404,
  "Continuing in another browser is turned off."
) {}

/** Finalizing or activating a deployment whose blobs are not all uploaded. */
export class BlobsMissing extends detailed<BlobsMissing>()(
  "blobs_missing",
  409,
  "Some files of the deployment have not been uploaded.",
  { missing: Schema.Array(Schema.String) }
) {}

/** The channel's voice settings cannot change while someone is in the call. */
export class VoiceInUse extends coded<VoiceInUse>()(
  "voice_in_use",
  409,
  "Someone is in this channel's voice call."
) {}

/** No such channel. */
export class ChannelNotFound extends coded<ChannelNotFound>()(
  "channel_not_found",
  404,
  "There is no such channel."
) {}

// Developers and money (spec section 4.9) ----------------------------------------------------------

/** Functions need prepaid credit. */
export class PrepaidRequired extends coded<PrepaidRequired>()(
  "prepaid_required",
  402,
  "Functions need prepaid credit."
) {}

/** The invite code does not exist. */
export class InvalidInviteCode extends coded<InvalidInviteCode>()(
  "invalid_invite_code",
  400,
  "This invite code is not valid."
) {}

/** The invite code was used by somebody else. */
export class InviteCodeUsed extends coded<InviteCodeUsed>()(
  "invite_code_used",
  409,
  "This invite code has been used."
) {}

/** The invite programme is full. */
export class InviteLimitReached extends coded<InviteLimitReached>()(
  "invite_limit_reached",
  409,
  "No more invites can be redeemed."
) {}

/** Invite credit is given once per account. */
export class AlreadyRedeemed extends coded<AlreadyRedeemed>()(
  "already_redeemed",
  409,
  "This account has redeemed an invite already."
) {}
