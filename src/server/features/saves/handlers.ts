/**
 * Cloud saves over HTTP: of the signed-in player, and of any player for a server that acts for it. A
 * write returns its new version. A write with an outdated `ifVersion` fails with `version_conflict` and
 * the current version.
 */
import { DateTime, Effect, Layer, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { SaveNotFound } from "#rpc/errors/codes"
import { type SaveItemRow, type SaveOwner, SaveRepository } from "#sql/saves"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { makeReadSaveBody } from "./body.ts"
import { makeEnvironmentQuota } from "./quota.ts"
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

/** The handlers of saves, for the player and for a server that acts for it. */
const makeSaves = Effect.gen(function* () {
  const quota = yield* makeEnvironmentQuota
  const put = yield* makePutSave(quota)
  const repository = yield* SaveRepository
  const readBody = makeReadSaveBody((yield* Settings).saves.maxBytes)
  return {
    list: () =>
      Effect.map(Effect.flatMap(ownerOf, repository.list), (items) => ({
        saves: items.map(saveView)
      })),
    read: Effect.fnUntraced(function* ({ params }: RequestOf<"saves", "read">) {
      const found = yield* repository.find({ ...(yield* ownerOf), key: params.key })
      return Option.isSome(found) ? saveResponse(found.value) : yield* new SaveNotFound()
    }),
    write: Effect.fnUntraced(function* ({
      params,
      request
    }: Pick<RequestOf<"saves", "write">, "params" | "request">) {
      return yield* put({ ...(yield* ownerOf), key: params.key }, yield* readBody(request))
    }),
    remove: Effect.fnUntraced(function* ({ params, query }: RequestOf<"saves", "remove">) {
      const ifVersion = query.ifVersion ?? null
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
  }
})

const DeletedSavesSweep = Layer.effectDiscard(
  Effect.gen(function* () {
    const repository = yield* SaveRepository
    yield* sweepHourly("Deleted saves", (now) =>
      repository.sweep(DateTime.subtract(now, { days: 1 }))
    )
  })
)

/** The groups `saves` and `playerSaves`. */
export const SavesHttp = mounted(makeSaves, ({ write, ...others }) => [
  apiGroup(Api, "saves", (handlers) => handlers.handleAll(others).handleRaw("write", write)),
  apiGroup(Api, "playerSaves", (handlers) => handlers.handleAll(others).handleRaw("write", write)),
  DeletedSavesSweep
])
