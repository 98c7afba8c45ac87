/**
 * Cloud saves over HTTP: `/v1/saves`, the signed-in player's own saves. A write returns its new
 * version. A write with an outdated `ifVersion` fails with `version_conflict` and the current version.
 */
import { DateTime, Effect, Layer, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import {
  NotFound,
  SaveNotFound,
  StorageQuotaExceeded,
  TooManySaves,
  VersionConflict
} from "#rpc/errors/codes"
import { throttles as rates } from "#rpc/limits"
import type { SaveItem } from "#rpc/saves"
import { type SaveItemRow, type SaveOwner, SaveRepository } from "#sql/saves"
import { sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { makeReadSaveBody } from "./body.ts"
import { makeEnvironmentQuota } from "./quota.ts"

const viewOf = ({ key, size, updatedAt, version }: SaveItemRow): SaveItem => ({
  key,
  version,
  size,
  updatedAt: DateTime.formatIso(updatedAt)
})

const ownerOf = Effect.map(CurrentPlayer, ({ environmentId, playerId }): SaveOwner => ({
  environmentId,
  playerId
}))

const conflict = (currentVersion: number) => new VersionConflict({ details: { currentVersion } })

/** Builds a response that contains the stored JSON text of `data` unchanged. */
const saveResponse = (row: SaveItemRow & { readonly data: string }) => {
  const item = JSON.stringify(viewOf(row))
  return HttpServerResponse.text(`${item.slice(0, -1)},"data":${row.data}}`, {
    contentType: "application/json"
  })
}

type EnvironmentQuota = Effect.Success<typeof makeEnvironmentQuota>

const guestQuotaMessage =
  "The saves of this guest are full. Delete or shrink saves, or link a sign-in method to the player."

const makeWrite = Effect.fnUntraced(function* (quota: EnvironmentQuota) {
  const repository = yield* SaveRepository
  const throttles = yield* Throttles
  const { environmentBytes, guestBytes, maxBytes, perPlayer } = (yield* Settings).saves
  const readBody = makeReadSaveBody(maxBytes)
  return Effect.fnUntraced(function* (key: string, request: Parameters<typeof readBody>[0]) {
    const { environmentId, playerId } = yield* CurrentPlayer
    yield* takeToken(throttles, rates.savePut, `save:${playerId}`)
    const { data, ifVersion, size } = yield* readBody(request)
    const now = yield* DateTime.now
    const saveRef = { environmentId, playerId, key }
    const { room, used } = yield* quota.usageOf(environmentId)
    const bounds = { maxSaves: perPlayer, guestBytesMost: guestBytes, environmentRoom: room }
    const result = yield* repository.put({ ...saveRef, data, size, now, ...bounds }, ifVersion)
    switch (result) {
      case "version_conflict":
        return yield* conflict(yield* repository.versionOf(saveRef))
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
        return viewOf({ key, version: result.version, size, updatedAt: now })
    }
  })
})

/** `GET`, `PUT` and `DELETE /v1/saves`. */
export const SavesHttp = HttpApiBuilder.group(
  Api,
  "saves",
  Effect.fn(function* (handlers) {
    const repository = yield* SaveRepository
    const quota = yield* makeEnvironmentQuota
    const write = yield* makeWrite(quota)
    return handlers
      .handle("list", () =>
        Effect.map(Effect.flatMap(ownerOf, repository.list), (items) => ({
          saves: items.map(viewOf)
        }))
      )
      .handle(
        "read",
        Effect.fnUntraced(function* ({ params }) {
          const found = yield* repository.find({ ...(yield* ownerOf), key: params.key })
          return Option.isSome(found) ? saveResponse(found.value) : yield* new SaveNotFound()
        })
      )
      .handleRaw("write", ({ params, request }) => write(params.key, request))
      .handle(
        "remove",
        Effect.fnUntraced(function* ({ params, query: { ifVersion = null } }) {
          const saveRef = { ...(yield* ownerOf), key: params.key }
          const now = yield* DateTime.now
          const removed = yield* repository.remove({ ...saveRef, ifVersion, now })
          if (Option.isSome(removed)) {
            yield* quota.add(saveRef.environmentId, removed.value)
            return { deleted: true as const }
          }
          const currentVersion = yield* repository.versionOf(saveRef)
          return yield* currentVersion === 0 ? new SaveNotFound() : conflict(currentVersion)
        })
      )
  })
).pipe(
  Layer.merge(
    Layer.effectDiscard(
      Effect.gen(function* () {
        const repository = yield* SaveRepository
        yield* sweepHourly("Deleted saves", (now) =>
          repository.sweep(DateTime.subtract(now, { days: 1 }))
        )
      })
    )
  )
)
