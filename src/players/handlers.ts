/** `players/:playerId/export` and `/delete` of the operator (spec section 4.8). */
import { DateTime, Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { Audit, type AuditEvent } from "../audit.ts"
import { playerRef } from "../moderation/player-ref.ts"
import { type Exported, PlayerData } from "./records.ts"

type PlayerParams = { readonly params: { readonly playerId: string } }

/** The data of saves goes out as the text that it is. */
const exportText = ({ saves, view }: Exported): string => {
  const items = saves.map(({ data, updatedAt, ...save }) => {
    const item = JSON.stringify({ ...save, updatedAt: DateTime.formatIso(updatedAt) })
    return `${item.slice(0, -1)},"data":${data}}`
  })
  return `${JSON.stringify(view).slice(0, -1)},"saves":[${items.join(",")}]}`
}

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
      return HttpServerResponse.text(exportText(exported), { contentType: "application/json" })
    }),
    delete: Effect.fnUntraced(function* ({ params }: PlayerParams) {
      const player = yield* playerRef(params.playerId)
      const environment = yield* CurrentEnvironment
      yield* data.delete(player, audit.record(environment, event("player.delete", player.playerId)))
      return { deleted: true as const }
    })
  }
})

/** The groups `playerData` and `projectPlayerData`. */
export const PlayerDataHttp = Layer.mergeAll(
  HttpApiBuilder.group(Api, "playerData", (handlers) =>
    Effect.map(makePlayerData, (all) => handlers.handleAll(all))
  ),
  HttpApiBuilder.group(Api, "projectPlayerData", (handlers) =>
    Effect.map(makePlayerData, (all) => handlers.handleAll(all))
  )
)
