/** Error codes of single modules: identities, game data, share, hosting, voice, developers and billing. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

// Identities -----------------------------------------------------------------------------------

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

/** The player does not exist in this environment. Sign in again, or check the id. */
export class PlayerNotFound extends coded<PlayerNotFound>()(
  "player_not_found",
  404,
  "There is no such player."
) {}

/** A player can only make the age band stricter. The operator can set any. */
export class AgeChangeNotAllowed extends coded<AgeChangeNotAllowed>()(
  "age_change_not_allowed",
  403,
  "A player can only make the age band stricter."
) {}

/** The shared sign-in app of provider `x` is overdue. Continue as a guest. */
export class XSigninUnavailable extends detailed<XSigninUnavailable>()(
  "x_signin_unavailable",
  402,
  "Sign-in with X is not available right now.",
  { continueAsGuest: Schema.Literal(true) }
) {}

// Game data ------------------------------------------------------------------------------------

/**
 * `ifVersion` is not the stored version. Read the save, merge and write again. `updatedAt` and `size` are
 * those of the stored save; without one they are null, and `currentVersion` is 0.
 */
export class VersionConflict extends detailed<VersionConflict>()(
  "version_conflict",
  409,
  "The save has changed since you read it.",
  {
    currentVersion: Schema.Finite,
    updatedAt: Schema.NullOr(Schema.String),
    size: Schema.NullOr(Schema.Finite)
  }
) {}

/** The player has no save with this key. */
export class SaveNotFound extends coded<SaveNotFound>()(
  "save_not_found",
  404,
  "There is no such save."
) {}

/** The save exceeds the size limit. `size` and `limit` are in bytes. Store less data. */
export class SaveTooLarge extends detailed<SaveTooLarge>()(
  "save_too_large",
  413,
  "The save is too large.",
  { size: Schema.Finite, limit: Schema.Finite }
) {}

/** The player has the maximum number of saves. Delete one first. */
export class TooManySaves extends detailed<TooManySaves>()(
  "too_many_saves",
  409,
  "The player has too many saves.",
  { limit: Schema.Finite }
) {}

/**
 * The saves of the guest, or the saves or files of the environment, have no room for more; `limit` and
 * `used` are in bytes. Delete or shrink saves, or wait until old deployments are removed. A guest who links
 * a sign-in method has no limit of its own; the operator raises that of the environment.
 */
export class StorageQuotaExceeded extends detailed<StorageQuotaExceeded>()(
  "storage_quota_exceeded",
  409,
  "The saves of this environment are full. Delete or shrink saves, or ask the operator for more room.",
  { limit: Schema.Finite, used: Schema.Finite }
) {}

/** The player has no identity of this provider. Offer to link one. */
export class IdentityNotLinked extends coded<IdentityNotLinked>()(
  "identity_not_linked",
  404,
  "The player has no account of this provider linked."
) {}

// Share, hosting, voice, channels --------------------------------------------------------------

/** The share tool is off in the config. Hide it in the app. */
export class ShareImagesDisabled extends coded<ShareImagesDisabled>()(
  "share_images_disabled",
  404,
  "Share images are turned off."
) {}

/** The share tool is off in the config. Hide it in the app. */
export class ShareTagsDisabled extends coded<ShareTagsDisabled>()(
  "share_tags_disabled",
  404,
  "Share tags are turned off."
) {}

/** The share tool is off in the config. Hide it in the app. */
export class ShareLinksDisabled extends coded<ShareLinksDisabled>()(
  "share_links_disabled",
  404,
  "Share links are turned off."
) {}

/** The share tool is off in the config. Hide it in the app. */
export class ShareTrackingDisabled extends coded<ShareTrackingDisabled>()(
  "share_tracking_disabled",
  404,
  "Share tracking is turned off."
) {}

/** Session transfer is off: `share.inAppBrowser` of the config. Hide it in the app. */
export class ShareInAppBrowserDisabled extends coded<ShareInAppBrowserDisabled>()(
  "share_inAppBrowser_disabled",
  404,
  "Continuing in another browser is turned off."
) {}

/** A deployment lacks uploaded files. Upload those in `missing` and retry. */
export class BlobsMissing extends detailed<BlobsMissing>()(
  "blobs_missing",
  409,
  "Some files of the deployment have not been uploaded.",
  { missing: Schema.Array(Schema.String) }
) {}

/**
 * The domain's DNS has no TXT record with the value. Add the record, wait until your DNS provider has
 * published it, and retry. `found` are the values that its DNS has.
 */
export class DomainNotVerified extends detailed<DomainNotVerified>()(
  "domain_not_verified",
  409,
  "The TXT record of the domain was not found. Add it, wait some minutes, and retry.",
  { name: Schema.String, value: Schema.String, found: Schema.Array(Schema.String) }
) {}

/** The app has the most domains that it may have. Remove one first. */
export class TooManyDomains extends detailed<TooManyDomains>()(
  "too_many_domains",
  409,
  "The app has as many domains as it may have. Remove one first.",
  { limit: Schema.Int }
) {}

/** The uploaded bytes do not have the SHA-256 of the path, or not the size of the manifest. Upload the file again. */
export class BlobHashMismatch extends detailed<BlobHashMismatch>()(
  "blob_hash_mismatch",
  400,
  "The uploaded bytes are not those that the deployment names.",
  { expectedBytes: Schema.Finite, receivedBytes: Schema.Finite }
) {}

/** The voice settings cannot change during a call. Retry after it has ended. */
export class VoiceInUse extends coded<VoiceInUse>()(
  "voice_in_use",
  409,
  "Someone is in this channel's voice call."
) {}

/** The environment has no such channel. */
export class ChannelNotFound extends coded<ChannelNotFound>()(
  "channel_not_found",
  404,
  "There is no such channel."
) {}

// Developers and billing -----------------------------------------------------------------------

/** Functions need prepaid credit. Add credit and retry. */
export class PrepaidRequired extends coded<PrepaidRequired>()(
  "prepaid_required",
  402,
  "Functions need prepaid credit."
) {}

/** The invite code does not exist. Ask for another one. */
export class InvalidInviteCode extends coded<InvalidInviteCode>()(
  "invalid_invite_code",
  400,
  "This invite code is not valid."
) {}

/** Another developer has used the invite code. Ask for another one. */
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

/** Invite credit is granted once for each account. */
export class AlreadyRedeemed extends coded<AlreadyRedeemed>()(
  "already_redeemed",
  409,
  "This account has already redeemed an invite."
) {}
