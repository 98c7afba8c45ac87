/**
 * Bans and appeals (spec sections 3, 4.2 and 4.8, decisions 3.3). Each change holds the player's row,
 * decides by the rules on what is stored, and tells all nodes with its commit: so of two at once each
 * builds on the other, and a ban that is answered is in force everywhere.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { Sanction } from "#rpc/appeals"
import {
  type AlreadyAppealed,
  type AlreadyResolved,
  NotFound,
  PlayerNotFound,
  type SanctionInactive
} from "#rpc/errors/codes"
import { type EnvironmentId, newId, type PlayerId } from "#rpc/ids"
import type { AppealItem, Ban, BanResult } from "#rpc/moderation"
import { type AppealsPage, type SanctionRow, SanctionRepository } from "#sql/moderation"
import { Invalidation } from "#server/platform/invalidation"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { appeal, ban, lift, resolve } from "./rules.ts"
import { appealItem, banResult, sanctionView } from "./views.ts"

const millisPerHour = 3_600_000

/** A player of an environment. */
export interface PlayerRef {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
}

/** An appeal; without a sanction it is against the last ban. */
export interface AppealRequest extends PlayerRef {
  readonly sanctionId: string | undefined
  readonly message: string
}

export interface Resolution {
  readonly environmentId: EnvironmentId
  readonly appealId: string
  readonly accept: boolean
  readonly response: string | undefined
}

/** The bans of players and the appeals against them. */
export class Sanctions extends Context.Service<
  Sanctions,
  {
    readonly ban: (player: PlayerRef, terms: Ban) => Effect.Effect<BanResult, PlayerNotFound>
    /** Lifts the ban, if there is one. */
    readonly unban: (player: PlayerRef) => Effect.Effect<BanResult, PlayerNotFound>
    /** The player's bans, newest first. */
    readonly list: (player: PlayerRef) => Effect.Effect<ReadonlyArray<Sanction>>
    readonly appeal: (
      appealing: AppealRequest
    ) => Effect.Effect<Sanction, NotFound | AlreadyAppealed | SanctionInactive>
    /** Appeals, the open ones first, then by age. */
    readonly appeals: (page: Omit<AppealsPage, "now">) => Effect.Effect<ReadonlyArray<AppealItem>>
    readonly resolve: (
      resolution: Resolution
    ) => Effect.Effect<AppealItem, NotFound | AlreadyResolved>
  }
>()("server/features/moderation/service/Sanctions") {
  static readonly layer = Layer.effect(
    Sanctions,
    Effect.gen(function* () {
      const rows = yield* SanctionRepository
      const inTurn = yield* makeWithLockedPlayer
      return Sanctions.of({
        ...(yield* makeBans(inTurn)),
        ...(yield* makeAppeals(inTurn)),
        list: Effect.fn("Sanctions.list")(function* (player) {
          const now = yield* DateTime.now
          return (yield* rows.ofPlayer(player)).map((row) => sanctionView(row, now))
        }),
        appeals: Effect.fn("Sanctions.appeals")(function* (page) {
          const now = yield* DateTime.now
          const found = yield* rows.appeals({ ...page, now })
          return found.flatMap((row) => appealItem(row, row.displayName, now) ?? [])
        })
      })
    })
  )
}

/** What a change decides on: the player, held, and its bans. */
interface LockedPlayer {
  readonly displayName: string
  /** Newest first. */
  readonly bans: ReadonlyArray<SanctionRow>
  readonly now: DateTime.Utc
}

type WithLockedPlayer = <A, E, R>(
  player: PlayerRef,
  change: (held: LockedPlayer) => Effect.Effect<A, E, R>
) => Effect.Effect<A, E | PlayerNotFound, R>

/** Changes of one player are made one after the other, each in a transaction. */
const makeWithLockedPlayer = Effect.gen(function* () {
  const rows = yield* SanctionRepository
  const sql = yield* SqlClient.SqlClient
  const inTurn: WithLockedPlayer = (player, change) =>
    Effect.gen(function* () {
      const held = yield* rows.hold(player)
      if (Option.isNone(held)) return yield* new PlayerNotFound()
      const bans = yield* rows.ofPlayer(player)
      return yield* change({ ...held.value, bans, now: yield* DateTime.now })
    }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
  return inTurn
})

const makeBans = Effect.fnUntraced(function* (inTurn: WithLockedPlayer) {
  const invalidation = yield* Invalidation
  const rows = yield* SanctionRepository
  const sql = yield* SqlClient.SqlClient
  const standings = yield* PlayerStatusCache
  const random = yield* SecureRandom.SecureRandom
  return {
    ban: Effect.fn("Sanctions.ban")(
      function* (player: PlayerRef, { durationHours, publicNote, reason }: Ban) {
        const id = yield* newId.sanction
        return yield* inTurn(
          player,
          Effect.fnUntraced(function* ({ bans: [last], now }) {
            const expiresAt =
              durationHours === undefined
                ? null
                : DateTime.add(now, { milliseconds: Math.ceil(durationHours * millisPerHour) })
            const words = { reason: reason ?? null, note: publicNote ?? null }
            const next = ban(last, { ...player, ...words, id, expiresAt }, now)
            yield* rows.save(next)
            const revoked = yield* rows.revokeSessions({ ...player, sanctionId: next.id, now })
            yield* standings.invalidate(player.environmentId, player.playerId)
            // By the answer the player writes on no node any more.
            yield* sql.afterCommit(invalidation.awaitAcknowledgements)
            return banResult(player.playerId, next, revoked, now)
          })
        )
      },
      Effect.provideService(SecureRandom.SecureRandom, random)
    ),
    unban: Effect.fn("Sanctions.unban")(function* (player: PlayerRef) {
      return yield* inTurn(
        player,
        Effect.fnUntraced(function* ({ bans: [last], now }) {
          if (last !== undefined) {
            yield* rows.save(lift(last, now))
            yield* standings.invalidate(player.environmentId, player.playerId)
          }
          return banResult(player.playerId, undefined, 0, now)
        })
      )
    })
  }
})

const makeAppeals = Effect.fnUntraced(function* (inTurn: WithLockedPlayer) {
  const rows = yield* SanctionRepository
  const standings = yield* PlayerStatusCache
  const random = yield* SecureRandom.SecureRandom
  return {
    appeal: Effect.fn("Sanctions.appeal")(
      function* ({ message, sanctionId, ...player }: AppealRequest) {
        const id = yield* newId.appeal
        return yield* inTurn(
          player,
          Effect.fnUntraced(function* ({ bans, now }) {
            const meant =
              sanctionId === undefined ? bans[0] : bans.find((one) => one.id === sanctionId)
            if (meant === undefined) return yield* new NotFound()
            const next = yield* Effect.fromResult(appeal(meant, { id, message }, now))
            yield* rows.save(next)
            return sanctionView(next, now)
          })
        ).pipe(Effect.catchTag("player_not_found", () => Effect.fail(new NotFound())))
      },
      Effect.provideService(SecureRandom.SecureRandom, random)
    ),
    resolve: Effect.fn("Sanctions.resolve")(function* (resolution: Resolution) {
      const { accept, appealId, environmentId } = resolution
      const response = resolution.response ?? null
      const found = yield* rows.ofAppeal(environmentId, appealId)
      if (Option.isNone(found)) return yield* new NotFound()
      const { playerId } = found.value
      return yield* inTurn(
        { environmentId, playerId },
        Effect.fnUntraced(function* ({ bans, displayName, now }) {
          const appealed = bans.find((one) => one.appealId === appealId)
          if (appealed === undefined) return yield* new NotFound()
          const next = yield* Effect.fromResult(resolve(appealed, { accept, response }, now))
          yield* rows.save(next)
          if (accept) yield* standings.invalidate(environmentId, playerId)
          return appealItem(next, displayName, now) ?? (yield* new NotFound())
        })
      ).pipe(Effect.catchTag("player_not_found", () => Effect.fail(new NotFound())))
    })
  }
})
