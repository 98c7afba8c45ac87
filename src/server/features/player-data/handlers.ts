/**
 * All that is stored about a player, shown and deleted: `/v1/players/me` of the player itself (spec
 * section 4.1), `players/:playerId/export` and `/delete` of the operator (spec section 4.8).
 */
import { DateTime, Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { playerRef } from "../moderation/player-ref.ts"
import { makeRequireProof } from "./proof.ts"
import { type ExportedPlayer, PlayerData } from "./service.ts"

type PlayerParams = { readonly params: { readonly playerId: string } }

/** The data of saves goes out as the text that it is. */
const exportText = ({ saves, view }: ExportedPlayer): string => {
  const items = saves.map(({ data, updatedAt, ...save }) => {
    const item = JSON.stringify({ ...save, updatedAt: DateTime.formatIso(updatedAt) })
    return `${item.slice(0, -1)},"data":${data}}`
  })
  return `${JSON.stringify(view).slice(0, -1)},"saves":[${items.join(",")}]}`
}

const exportAnswer = (exported: ExportedPlayer) =>
  HttpServerResponse.text(exportText(exported), { contentType: "application/json" })

const gone = () => Effect.fail(new NotFound())

const OwnDataHttp = HttpApiBuilder.group(
  Api,
  "playerData",
  Effect.fn(function* (handlers) {
    const data = yield* PlayerData
    const prove = yield* makeRequireProof
    return handlers.handleAll({
      export: Effect.fnUntraced(function* () {
        const player = yield* CurrentPlayer
        return exportAnswer(yield* Effect.catchTag(data.export(player), "player_not_found", gone))
      }),
      delete: Effect.fnUntraced(function* ({ payload }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const player = { environmentId, playerId }
        yield* prove(player, payload)
        yield* Effect.catchTag(data.delete(player, Effect.void), "player_not_found", gone)
        return { deleted: true as const }
      })
    })
  })
)

const event = (action: "player.export" | "player.delete", id: string): AuditEvent => ({
  action,
  target: { kind: "player", id }
})

const makePlayerData = Effect.gen(function* () {
  const audit = yield* Audit
  const data = yield* PlayerData
  return {
    export: Effect.fnUntraced(function* ({ params }: PlayerParams) {
      const exported = yield* data.export(yield* playerRef(params.playerId))
      yield* audit.record(yield* CurrentEnvironment, event("player.export", params.playerId))
      return exportAnswer(exported)
    }),
    delete: Effect.fnUntraced(function* ({ params }: PlayerParams) {
      const player = yield* playerRef(params.playerId)
      const environment = yield* CurrentEnvironment
      yield* data.delete(player, audit.record(environment, event("player.delete", player.playerId)))
      return { deleted: true as const }
    })
  }
})

/** The groups `ownData`, `playerData` and `projectPlayerData`. */
export const PlayerDataHttp = Layer.mergeAll(
  OwnDataHttp,
  HttpApiBuilder.group(Api, "adminPlayerData", (handlers) =>
    Effect.map(makePlayerData, (all) => handlers.handleAll(all))
  ),
  HttpApiBuilder.group(Api, "projectPlayerData", (handlers) =>
    Effect.map(makePlayerData, (all) => handlers.handleAll(all))
  )
)
