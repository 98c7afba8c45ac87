/**
 * Moderation over HTTP for operators: bans, appeals, age groups and token verification.
 */
import { Effect, Option, Schema } from "effect"
import { ageProfileOf } from "#rpc/ages"
import { Api } from "#rpc/api"

import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { NotFound, InvalidToken, PlayerNotFound, TokenExpired } from "#rpc/errors/codes"
import { AppealId } from "#rpc/ids"
import { http } from "#rpc/limits"
import type { AppealItem } from "#rpc/moderation"
import { PlayerRepository } from "#sql/players"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { invalidField } from "#server/platform/invalid-request"
import { pageOf } from "#server/platform/pages"
import { Audit } from "../audit/service.ts"
import { Configs } from "../config/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { AccessTokens } from "../sessions/tokens.ts"
import { playerRef } from "./player-ref.ts"
import { Sanctions } from "./service.ts"

const makeBans = Effect.gen(function* () {
  const audit = yield* Audit
  const sanctions = yield* Sanctions
  return {
    ban: Effect.fnUntraced(function* ({
      endpoint,
      params,
      payload
    }: RequestOf<"moderation", "ban">) {
      const { kind } = yield* CurrentActor
      if (payload.durationHours !== undefined && kind === "developer") {
        const message = "Only a secret key can set the duration of a ban. Omit durationHours."
        return yield* invalidField("durationHours", message)
      }
      // The entry omits the reason: the log outlives the player, whose data it must not keep.
      const ban = sanctions.ban(yield* playerRef(params.playerId), payload)
      return yield* audit.recordOperation(endpoint, ban, ({ player }) => ({
        target: { kind: "player", id: player.id },
        details: { expiresAt: player.banExpiresAt }
      }))
    }),
    unban: Effect.fnUntraced(function* ({ endpoint, params }: RequestOf<"moderation", "unban">) {
      const player = yield* playerRef(params.playerId)
      const unban = Effect.gen(function* () {
        const bans = yield* sanctions.list(player)
        return { lifted: bans.find(({ active }) => active), result: yield* sanctions.unban(player) }
      })
      const { result } = yield* audit.recordOperation(endpoint, unban, ({ lifted }) =>
        lifted === undefined
          ? undefined
          : {
              target: { kind: "player", id: player.playerId },
              details: { sanctionId: lifted.id }
            }
      )
      return result
    })
  }
})

const makePlayers = Effect.gen(function* () {
  const audit = yield* Audit
  const configs = yield* Configs
  const players = yield* PlayerRepository
  const playerStatuses = yield* PlayerStatusCache
  const tokens = yield* AccessTokens
  return {
    age: Effect.fnUntraced(function* ({
      endpoint,
      params,
      payload
    }: RequestOf<"moderation", "age">) {
      const { environmentId, playerId } = yield* playerRef(params.playerId)
      const before = Option.getOrUndefined(yield* players.find(environmentId, playerId))
      if (before === undefined) return yield* new PlayerNotFound()
      const change = Effect.gen(function* () {
        const after = yield* players.declareAge(environmentId, playerId, payload.band)
        if (Option.isNone(after)) return yield* new PlayerNotFound()
        yield* playerStatuses.invalidate(environmentId, playerId)
      })
      yield* audit.recordOperation(endpoint, change, () => ({
        target: { kind: "player", id: playerId },
        details: { before: before.declaredAgeBand, after: payload.band }
      }))
      const { audience } = (yield* configs.current(environmentId)).config
      return ageProfileOf(audience, payload.band)
    }),
    verifyToken: Effect.fnUntraced(function* ({ payload }: RequestOf<"moderation", "verifyToken">) {
      const { environmentId } = yield* CurrentEnvironment
      const caller = yield* Effect.catchTag(tokens.identify(payload.token), "unauthorized", () =>
        Effect.fail(new InvalidToken())
      )
      if (caller.environmentId !== environmentId) return yield* new TokenExpired()
      const { playerId } = caller
      const found = yield* players.find(environmentId, playerId)
      if (Option.isNone(found)) return yield* new PlayerNotFound()
      const status = yield* playerStatuses.get(environmentId, playerId)
      const banned = status?.banned !== undefined
      return { player: { id: playerId, displayName: found.value.displayName, banned } }
    })
  }
})

const isAppealId = Schema.is(AppealId)

/** The cursor of a page of appeals: 0 for open or 1 for closed, then the last appeal's id. */
const cursorOf = ({ id, status }: AppealItem): string => `${status === "open" ? 0 : 1}${id}`

const afterCursor = (cursor: string | undefined) =>
  cursor === undefined ? null : { closed: cursor.startsWith("1"), appealId: cursor.slice(1) }

const makeAppeals = Effect.gen(function* () {
  const audit = yield* Audit
  const sanctions = yield* Sanctions
  return {
    appeals: Effect.fnUntraced(function* ({ query }: RequestOf<"moderation", "appeals">) {
      const { environmentId } = yield* CurrentEnvironment
      const { cursor, limit = http.pageDefault, status = null } = query
      const after = afterCursor(cursor)
      const page = { environmentId, status, after, limit: limit + 1 }
      const found = yield* sanctions.appeals(page)
      const { nextCursor, rows } = pageOf(found, limit, cursorOf)
      return { appeals: rows, nextCursor }
    }),
    resolve: Effect.fnUntraced(function* ({
      endpoint,
      params: { appealId },
      payload
    }: RequestOf<"moderation", "resolve">) {
      const { environmentId } = yield* CurrentEnvironment
      const { accept, response } = payload
      if (!isAppealId(appealId)) return yield* new NotFound()
      const resolve = sanctions.resolve({ environmentId, appealId, accept, response })
      const appeal = yield* audit.recordOperation(endpoint, resolve, ({ player, sanctionId }) => ({
        target: { kind: "appeal", id: appealId },
        details: { accept, playerId: player.id, sanctionId }
      }))
      return { appeal }
    })
  }
})

const makeModeration = Effect.gen(function* () {
  return { ...(yield* makeBans), ...(yield* makePlayers), ...(yield* makeAppeals) }
})

/** The groups `moderation` and `projectModeration`. */
export const ModerationHttp = mounted(makeModeration, (all) => [
  apiGroup(Api, "moderation", (handlers) => handlers.handleAll(all)),
  apiGroup(Api, "projectModeration", (handlers) => handlers.handleAll(all))
])
