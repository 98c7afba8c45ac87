/**
 * Cloud saves over HTTP: `/v1/saves`, the signed-in player's own saves. A write returns its new
 * version. A write with an outdated `ifVersion` fails with `version_conflict` and the current version.
 */
import { DateTime, Effect, Layer, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { SaveNotFound } from "#rpc/errors/codes"
import { throttles as rates } from "#rpc/limits"
import { type SaveItemRow, type SaveOwner, SaveRepository } from "#sql/saves"
import { apiGroup } from "#server/platform/api-group"
import { sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { makeReadSaveBody } from "./body.ts"
import { type EnvironmentQuota, makeEnvironmentQuota } from "./quota.ts"
import { makePutSave, saveConflict, saveView } from "./service.ts"

const ownerOf = Effect.map(CurrentPlayer, ({ environmentId, playerId }): SaveOwner => ({
  environmentId,
  playerId
}))

/** Builds a response that contains the stored JSON text of `data` unchanged. */
const saveResponse = (row: SaveItemRow & { readonly data: string }) => {
  const item = JSON.stringify(saveView(row))
  return HttpServerResponse.text(`${item.slice(0, -1)},"data":${row.data}}`, {
    contentType: "application/json"
  })
}

/** Writes the body of a request, within the player's rate limit. */
const makeWrite = Effect.fnUntraced(function* (quota: EnvironmentQuota) {
  const put = yield* makePutSave(quota)
  const throttles = yield* Throttles
  const { maxBytes } = (yield* Settings).saves
  const readBody = makeReadSaveBody(maxBytes)
  return Effect.fnUntraced(function* (key: string, request: Parameters<typeof readBody>[0]) {
    const owner = yield* ownerOf
    yield* takeToken(throttles, rates.savePut, `save:${owner.playerId}`)
    return yield* put({ ...owner, key }, yield* readBody(request))
  })
})

/** `GET`, `PUT` and `DELETE /v1/saves`. */
export const SavesHttp = apiGroup(
  Api,
  "saves",
  Effect.fn(function* (handlers) {
    const repository = yield* SaveRepository
    const quota = yield* makeEnvironmentQuota
    const write = yield* makeWrite(quota)
    return handlers
      .handle("list", () =>
        Effect.map(Effect.flatMap(ownerOf, repository.list), (items) => ({
          saves: items.map(saveView)
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
          const stored = yield* repository.item(saveRef)
          return yield* Option.isNone(stored) ? new SaveNotFound() : saveConflict(stored)
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
