/** Error codes of game data: saves, and files of hosted apps, which share the last one. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

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
