/** Writes of saves, within the quotas of the player and the environment. */
import { DateTime, Effect, Option } from "effect"
import { NotFound, StorageQuotaExceeded, TooManySaves, VersionConflict } from "#rpc/errors/codes"
import type { SaveItem } from "#rpc/saves"
import { type SaveItemRow, type SaveOwner, SaveRepository } from "#sql/saves"
import { Settings } from "#server/platform/settings/settings"
import type { SaveBody } from "./body.ts"
import type { EnvironmentQuota } from "./quota.ts"

export const saveView = ({ key, size, updatedAt, version }: SaveItemRow): SaveItem => ({
  key,
  version,
  size,
  updatedAt: DateTime.formatIso(updatedAt)
})

/** Returns the error of a write with an outdated `ifVersion`, which describes the stored save. */
export const saveConflict = (stored: Option.Option<SaveItemRow>) =>
  new VersionConflict({
    details: Option.match(stored, {
      onNone: () => ({ currentVersion: 0, updatedAt: null, size: null }),
      onSome: ({ size, updatedAt, version }) => ({
        currentVersion: version,
        updatedAt: DateTime.formatIso(updatedAt),
        size
      })
    })
  })

const guestQuotaMessage =
  "The saves of this guest are full. Delete or shrink saves, or link a sign-in method to the player."

/** Writes a save. The caller must have checked the body. */
export const makePutSave = Effect.fnUntraced(function* (quota: EnvironmentQuota) {
  const repository = yield* SaveRepository
  const { environmentBytes, guestBytes, perPlayer } = (yield* Settings).saves
  return Effect.fnUntraced(function* (
    saveRef: SaveOwner & { readonly key: string },
    { data, ifVersion, size }: SaveBody
  ) {
    const { environmentId, key } = saveRef
    const now = yield* DateTime.now
    const { bytesLeft, used } = yield* quota.usageOf(environmentId)
    const bounds = {
      maxSaves: perPlayer,
      guestBytesMax: guestBytes,
      environmentBytesLeft: bytesLeft
    }
    const result = yield* repository.put({ ...saveRef, data, size, now, ...bounds }, ifVersion)
    switch (result) {
      case "version_conflict":
        return yield* saveConflict(yield* repository.item(saveRef))
      case "too_many_saves":
        return yield* new TooManySaves({ details: { limit: perPlayer } })
      case "environment_save_bytes":
        return yield* new StorageQuotaExceeded({ details: { limit: environmentBytes, used } })
      case "guest_save_bytes":
        return yield* new StorageQuotaExceeded({
          message: guestQuotaMessage,
          details: { limit: guestBytes, used: yield* repository.bytesOfPlayer(saveRef) }
        })
      case "no_player":
        // An access token stays valid for up to fifteen minutes after its player is deleted.
        return yield* new NotFound()
      default:
        yield* quota.add(environmentId, result.growth)
        return saveView({ key, version: result.version, size, updatedAt: now })
    }
  })
})
