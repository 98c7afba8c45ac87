/**
 * Export and deletion of player data: `/v1/players/me` for the player, `players/:playerId/export` and
 * `/delete` for operators.
 */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { whileCredentialsCount } from "#server/platform/credential-check"
import { withRetryAfter } from "#server/platform/throttle-guard"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { playerRef } from "../moderation/player-ref.ts"
import { makeRequireProof } from "./proof.ts"
import { PlayerData, type PlayerJson } from "./service.ts"

/** Streams an export. Cuts the connection when the credentials of the request end. */
const exportResponse = (json: PlayerJson) =>
  Effect.map(whileCredentialsCount(json), (counted) =>
    HttpServerResponse.stream(Stream.encodeText(counted), { contentType: "application/json" })
  )

const notFound = () => Effect.fail(new NotFound())

const PlayerHttp = apiGroup(
  Api,
  "playerData",
  Effect.fn(function* (handlers) {
    const data = yield* PlayerData
    const requireProof = yield* makeRequireProof
    return handlers.handleAll({
      export: Effect.fnUntraced(function* () {
        const player = yield* CurrentPlayer
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
    export: Effect.fnUntraced(function* ({ params }: RequestOf<"adminPlayerData", "export">) {
      const exported = yield* withRetryAfter(data.export(yield* playerRef(params.playerId)))
      yield* audit.record(yield* CurrentEnvironment, auditEvent("player.export", params.playerId))
      return yield* exportResponse(exported)
    }),
    delete: Effect.fnUntraced(function* ({ params }: RequestOf<"adminPlayerData", "delete">) {
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

export const PlayerDataHttp = mounted(makeOperatorHandlers, (all) => [
  PlayerHttp,
  apiGroup(Api, "adminPlayerData", (handlers) => handlers.handleAll(all)),
  apiGroup(Api, "projectPlayerData", (handlers) => handlers.handleAll(all))
])
