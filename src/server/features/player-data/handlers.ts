/**
 * Export and deletion of player data: `/v1/players/me` for the player, `players/:playerId/export` and
 * `/delete` for operators.
 */
import { DateTime, Effect, Layer, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { throttles as rates } from "#rpc/limits"
import type { ExportedSave } from "#sql/player-data/repository"
import { apiGroup } from "#server/platform/api-group"
import { whileCredentialsCount } from "#server/platform/credential-check"
import { takeToken, withRetryAfter } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { playerRef } from "../moderation/player-ref.ts"
import { makeRequireProof } from "./proof.ts"
import { type ExportedPlayer, PlayerData } from "./service.ts"

type PlayerParams = { readonly params: { readonly playerId: string } }

const head = ({ view }: ExportedPlayer): string => `${JSON.stringify(view).slice(0, -1)},"saves":[`

/** Serializes a save. Inserts its data unchanged, since it is already JSON text. */
const saveText = ({ data, updatedAt, ...save }: ExportedSave, index: number): string => {
  const item = JSON.stringify({ ...save, updatedAt: DateTime.formatIso(updatedAt) })
  return `${index === 0 ? "" : ","}${item.slice(0, -1)},"data":${data}}`
}

/**
 * Streams an export. Reads the next save after the client has read the one before. Cuts the connection
 * when the credentials of the request end.
 */
const exportResponse = Effect.fnUntraced(function* (exported: ExportedPlayer) {
  const saves = yield* whileCredentialsCount(exported.saves)
  return HttpServerResponse.stream(
    Stream.make(head(exported)).pipe(
      Stream.concat(
        Stream.zipWithIndex(saves).pipe(Stream.map(([save, index]) => saveText(save, index)))
      ),
      Stream.concat(Stream.make("]}")),
      Stream.encodeText
    ),
    { contentType: "application/json" }
  )
})

const notFound = () => Effect.fail(new NotFound())

const PlayerHttp = apiGroup(
  Api,
  "playerData",
  Effect.fn(function* (handlers) {
    const data = yield* PlayerData
    const throttles = yield* Throttles
    const requireProof = yield* makeRequireProof
    return handlers.handleAll({
      export: Effect.fnUntraced(function* () {
        const player = yield* CurrentPlayer
        yield* takeToken(throttles, rates.exportPerPlayer, `export:${player.playerId}`)
        return yield* exportResponse(
          yield* Effect.catchTag(withRetryAfter(data.export(player)), "player_not_found", notFound)
        )
      }),
      delete: Effect.fnUntraced(function* ({ payload }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const player = { environmentId, playerId }
        yield* requireProof(player, payload)
        yield* Effect.catchTag(data.delete(player, Effect.void), "player_not_found", notFound)
        return { deleted: true as const }
      })
    })
  })
)

const auditEvent = (action: "player.export" | "player.delete", id: string): AuditEvent => ({
  action,
  target: { kind: "player", id }
})

const makeOperatorHandlers = Effect.gen(function* () {
  const audit = yield* Audit
  const data = yield* PlayerData
  return {
    export: Effect.fnUntraced(function* ({ params }: PlayerParams) {
      const exported = yield* withRetryAfter(data.export(yield* playerRef(params.playerId)))
      yield* audit.record(yield* CurrentEnvironment, auditEvent("player.export", params.playerId))
      return yield* exportResponse(exported)
    }),
    delete: Effect.fnUntraced(function* ({ params }: PlayerParams) {
      const player = yield* playerRef(params.playerId)
      const environment = yield* CurrentEnvironment
      yield* data.delete(
        player,
        audit.record(environment, auditEvent("player.delete", player.playerId))
      )
      return { deleted: true as const }
    })
  }
})

export const PlayerDataHttp = Layer.mergeAll(
  PlayerHttp,
  apiGroup(Api, "adminPlayerData", (handlers) =>
    Effect.map(makeOperatorHandlers, (all) => handlers.handleAll(all))
  ),
  apiGroup(Api, "projectPlayerData", (handlers) =>
    Effect.map(makeOperatorHandlers, (all) => handlers.handleAll(all))
  )
)
