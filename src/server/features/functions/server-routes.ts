/** Routes of the binding `svc`: players, saves, stats, rooms and channels of the environment. */
import { DateTime, Effect, Option, Schema } from "effect"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { ChannelMessage } from "#rpc/channels"
import {
  type CodedError,
  InvalidJson,
  PayloadTooLarge,
  PlayerNotFound,
  SaveNotFound
} from "#rpc/errors/codes"
import { channels as channelLimits, rateWindows, rooms as roomLimits } from "#rpc/limits"
import { Ban } from "#rpc/moderation"
import { SaveKey, SavePut } from "#rpc/saves"
import { StatsReport } from "#rpc/stats"
import { PlayerRepository } from "#sql/players"
import { RoomRepository } from "#sql/rooms"
import { SaveRepository } from "#sql/saves"
import { jsonBytes } from "#entities/room/json-state"
import { invalidRequest } from "#server/platform/invalid-request"
import { Settings } from "#server/platform/settings/settings"
import { Throttles } from "#server/platform/throttles"
import { Audit } from "../audit/service.ts"
import { callChannel, makeFindChannel } from "../channels/calls.ts"
import { makeRequireFeature } from "../config/service.ts"
import { playerRef } from "../moderation/player-ref.ts"
import { Sanctions } from "../moderation/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { playerView } from "../players/view.ts"
import { parseSaveBody } from "../saves/body.ts"
import { makeEnvironmentQuota } from "../saves/quota.ts"
import { makePutSave, saveConflict, saveView } from "../saves/service.ts"
import { StatReports } from "../stats/service.ts"

/** Input of a call: the parameters of its path, its query, and its body as text. */
interface ServerInput {
  readonly params: ReadonlyArray<string>
  readonly query: Readonly<Record<string, string>>
  readonly body: string
}

/** Route of the binding; `:` in its path marks a parameter. */
export interface ServerRoute {
  readonly method: "DELETE" | "GET" | "POST" | "PUT"
  readonly path: string
  readonly answer: (
    input: ServerInput
  ) => Effect.Effect<unknown, CodedError, CurrentActor | CurrentEnvironment>
}

/** Decodes the body of a call. An absent body is an empty object. */
const decodeBody = <A>(schema: Schema.Codec<A, unknown>, body: string) =>
  Effect.try({
    try: (): unknown => JSON.parse(body === "" ? "{}" : body),
    catch: () => new InvalidJson()
  }).pipe(
    Effect.flatMap((value) =>
      Effect.mapError(Schema.decodeUnknownEffect(schema)(value, { errors: "all" }), ({ issue }) =>
        invalidRequest(issue)
      )
    )
  )

const makePlayerRoutes = Effect.gen(function* () {
  const audit = yield* Audit
  const players = yield* PlayerRepository
  const sanctions = yield* Sanctions
  const statuses = yield* PlayerStatusCache
  const get: ServerRoute = {
    method: "GET",
    path: "players/:",
    answer: Effect.fnUntraced(function* ({ params: [id = ""] }) {
      const { environmentId, playerId } = yield* playerRef(id)
      const found = yield* players.find(environmentId, playerId)
      if (Option.isNone(found)) return yield* new PlayerNotFound()
      const status = yield* statuses.get(environmentId, playerId)
      return { player: { ...playerView(found.value), banned: status?.banned !== undefined } }
    })
  }
  const ban: ServerRoute = {
    method: "POST",
    path: "players/:/ban",
    answer: Effect.fnUntraced(function* ({ body, params: [id = ""] }) {
      const player = yield* playerRef(id)
      const terms = yield* decodeBody(Ban, body)
      const banned = sanctions.ban(player, terms)
      return yield* audit.recordChange(yield* CurrentEnvironment, banned, ({ player: result }) => ({
        action: "player.ban",
        target: { kind: "player", id: player.playerId },
        details: { expiresAt: result.banExpiresAt }
      }))
    })
  }
  const unban: ServerRoute = {
    method: "POST",
    path: "players/:/unban",
    answer: Effect.fnUntraced(function* ({ params: [id = ""] }) {
      const player = yield* playerRef(id)
      const target = { kind: "player", id: player.playerId }
      const environment = yield* CurrentEnvironment
      return yield* audit.recordChange(environment, sanctions.unban(player), () => ({
        action: "player.unban",
        target
      }))
    })
  }
  return [get, ban, unban]
})

const isSaveKey = Schema.is(SaveKey)

const IfVersion = Schema.Struct({ ifVersion: SavePut.fields.ifVersion })

const makeSaveRoutes = Effect.gen(function* () {
  const quota = yield* makeEnvironmentQuota
  const players = yield* PlayerRepository
  const put = yield* makePutSave(quota)
  const repository = yield* SaveRepository
  const requireFeature = yield* makeRequireFeature
  const { maxBytes } = (yield* Settings).saves
  const refOf = Effect.fnUntraced(function* ([id = "", key = ""]: ReadonlyArray<string>) {
    yield* requireFeature("saves")
    const owner = yield* playerRef(id)
    return isSaveKey(key) ? { ...owner, key } : yield* new SaveNotFound()
  })
  const list: ServerRoute = {
    method: "GET",
    path: "players/:/saves",
    answer: Effect.fnUntraced(function* ({ params: [id = ""] }) {
      yield* requireFeature("saves")
      const items = yield* repository.list(yield* playerRef(id))
      return { saves: items.map(saveView) }
    })
  }
  const read: ServerRoute = {
    method: "GET",
    path: "players/:/saves/:",
    answer: Effect.fnUntraced(function* ({ params }) {
      const found = Option.getOrUndefined(yield* repository.find(yield* refOf(params)))
      if (found === undefined) return yield* new SaveNotFound()
      const data: unknown = JSON.parse(found.data)
      return { ...saveView(found), data }
    })
  }
  const write: ServerRoute = {
    method: "PUT",
    path: "players/:/saves/:",
    answer: Effect.fnUntraced(function* ({ body, params }) {
      const ref = yield* refOf(params)
      // A save needs a player, but the database does not ask whose.
      const owner = yield* players.find(ref.environmentId, ref.playerId)
      if (Option.isNone(owner)) return yield* new PlayerNotFound()
      return yield* put(ref, yield* Effect.fromResult(parseSaveBody(body, maxBytes)))
    })
  }
  const remove: ServerRoute = {
    method: "DELETE",
    path: "players/:/saves/:",
    answer: Effect.fnUntraced(function* ({ body, params }) {
      const ref = yield* refOf(params)
      const { ifVersion = null } = yield* decodeBody(IfVersion, body)
      const removed = yield* repository.remove({ ...ref, ifVersion, now: yield* DateTime.now })
      if (Option.isSome(removed)) {
        yield* quota.add(ref.environmentId, removed.value)
        return { deleted: true }
      }
      const stored = yield* repository.item(ref)
      return yield* Option.isNone(stored) ? new SaveNotFound() : saveConflict(stored)
    })
  }
  return [list, read, write, remove]
})

const makeStatRoutes = Effect.gen(function* () {
  const reports = yield* StatReports
  const players = yield* PlayerRepository
  const requireFeature = yield* makeRequireFeature
  const playerOf = Effect.fnUntraced(function* (id: string) {
    yield* requireFeature("stats")
    const { environmentId, playerId } = yield* playerRef(id)
    const found = Option.getOrUndefined(yield* players.find(environmentId, playerId))
    if (found === undefined) return yield* new PlayerNotFound()
    const { isGuest } = found
    return { environmentId, playerId, isGuest, sessionId: undefined, expiresAt: Infinity }
  })
  const read: ServerRoute = {
    method: "GET",
    path: "players/:/stats",
    answer: Effect.fnUntraced(function* ({ params: [id = ""] }) {
      return { stats: yield* reports.totals(yield* playerOf(id)) }
    })
  }
  const report: ServerRoute = {
    method: "POST",
    path: "players/:/stats",
    answer: Effect.fnUntraced(function* ({ body, params: [id = ""] }) {
      const player = yield* playerOf(id)
      const { stats } = yield* decodeBody(StatsReport, body)
      const environment = yield* CurrentEnvironment
      return yield* yield* reports.prepare({ environment, player, values: stats })
    })
  }
  return [read, report]
})

const RoomQuery = Schema.Struct({ mode: Schema.optionalKey(Schema.String) })

const makeRealtimeRoutes = Effect.gen(function* () {
  const findChannel = yield* makeFindChannel
  const requireFeature = yield* makeRequireFeature
  const rooms = yield* RoomRepository
  const throttles = yield* Throttles
  const list: ServerRoute = {
    method: "GET",
    path: "rooms",
    answer: Effect.fnUntraced(function* ({ query }) {
      yield* requireFeature("multiplayer")
      const { mode } = yield* decodeBody(RoomQuery, JSON.stringify(query))
      const { environmentId } = yield* CurrentEnvironment
      const found = yield* rooms.list(environmentId, mode, roomLimits.listDefault)
      return {
        rooms: found.map((room) => ({ ...room, createdAt: DateTime.formatIso(room.createdAt) }))
      }
    })
  }
  const message: ServerRoute = {
    method: "POST",
    path: "channels/:/messages",
    answer: Effect.fnUntraced(function* ({ body, params: [name = ""] }) {
      yield* requireFeature("realtimeChannels")
      const { environmentId } = yield* CurrentEnvironment
      yield* throttles.take(rateWindows.channelMessages, `channelMessages:fn:${environmentId}`)
      const sent = yield* decodeBody(ChannelMessage, body)
      if (jsonBytes(sent.data) > channelLimits.dataMaxBytes) {
        return yield* new PayloadTooLarge({ details: { limit: channelLimits.dataMaxBytes } })
      }
      const channel = yield* findChannel(name)
      return { delivered: yield* callChannel(channel.Publish(sent)) }
    })
  }
  return [list, message]
})

/** All routes. */
export const makeServerRoutes: Effect.Effect<
  ReadonlyArray<ServerRoute>,
  never,
  | Effect.Services<typeof makePlayerRoutes>
  | Effect.Services<typeof makeSaveRoutes>
  | Effect.Services<typeof makeStatRoutes>
  | Effect.Services<typeof makeRealtimeRoutes>
> = Effect.gen(function* () {
  return [
    ...(yield* makePlayerRoutes),
    ...(yield* makeSaveRoutes),
    ...(yield* makeStatRoutes),
    ...(yield* makeRealtimeRoutes)
  ]
})
