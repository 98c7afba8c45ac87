/**
 * `/v1/saves` (spec section 4.3): the signed-in player's saves. A save that is another player's does
 * not exist; a write says which version it made, and one that comes too late which it would meet.
 */
import { DateTime, Effect, Layer, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { NotFound, SaveNotFound, TooManySaves, VersionConflict } from "#rpc/errors/codes"
import { throttles as paces } from "#rpc/limits"
import type { SaveItem } from "#rpc/saves"
import { type SaveItemRow, type SaveOwner, SaveRepository } from "#sql/saves"
import { sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { makeReadSaveBody } from "./body.ts"

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

/** The answer with the data as the text that it is. */
const answerOf = (row: SaveItemRow & { readonly data: string }) => {
  const item = JSON.stringify(viewOf(row))
  return HttpServerResponse.text(`${item.slice(0, -1)},"data":${row.data}}`, {
    contentType: "application/json"
  })
}

const makeWrite = Effect.gen(function* () {
  const rows = yield* SaveRepository
  const throttles = yield* Throttles
  const { maxBytes, perPlayer } = (yield* Settings).saves
  const readBody = makeReadSaveBody(maxBytes)
  return Effect.fnUntraced(function* (key: string, request: Parameters<typeof readBody>[0]) {
    const { environmentId, playerId } = yield* CurrentPlayer
    yield* takeToken(throttles, paces.savePut, `save:${playerId}`)
    const { data, ifVersion, size } = yield* readBody(request)
    const now = yield* DateTime.now
    const named = { environmentId, playerId, key }
    const written = yield* rows.put({ ...named, data, size, now, most: perPlayer }, ifVersion)
    switch (written) {
      case "version_conflict":
        return yield* conflict(yield* rows.versionOf(named))
      case "too_many_saves":
        return yield* new TooManySaves({ details: { limit: perPlayer } })
      case "no_player":
        // A token outlives its player by up to fifteen minutes.
        return yield* new NotFound()
      default:
        return viewOf({ key, version: written, size, updatedAt: now })
    }
  })
})

/** `GET`, `PUT` and `DELETE /v1/saves`. */
export const SavesHttp = HttpApiBuilder.group(
  Api,
  "saves",
  Effect.fn(function* (handlers) {
    const rows = yield* SaveRepository
    const write = yield* makeWrite
    return handlers
      .handle("list", () =>
        Effect.map(Effect.flatMap(ownerOf, rows.list), (items) => ({ saves: items.map(viewOf) }))
      )
      .handle(
        "read",
        Effect.fnUntraced(function* ({ params }) {
          const found = yield* rows.find({ ...(yield* ownerOf), key: params.key })
          return Option.isSome(found) ? answerOf(found.value) : yield* new SaveNotFound()
        })
      )
      .handleRaw("write", ({ params, request }) => write(params.key, request))
      .handle(
        "remove",
        Effect.fnUntraced(function* ({ params, query: { ifVersion = null } }) {
          const named = { ...(yield* ownerOf), key: params.key }
          const now = yield* DateTime.now
          if (yield* rows.remove({ ...named, ifVersion, now })) return { deleted: true as const }
          const currentVersion = yield* rows.versionOf(named)
          return yield* currentVersion === 0 ? new SaveNotFound() : conflict(currentVersion)
        })
      )
  })
).pipe(
  Layer.merge(
    Layer.effectDiscard(
      Effect.gen(function* () {
        const rows = yield* SaveRepository
        yield* sweepHourly("Deleted saves", (now) =>
          rows.sweep(DateTime.subtract(now, { days: 1 }))
        )
      })
    )
  )
)
