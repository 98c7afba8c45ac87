/**
 * Bans and appeals. Each change locks the player's row, applies the rules to the stored bans, and
 * notifies all nodes with its commit. So concurrent changes of one player serialize, and a ban takes
 * effect on all nodes before its reply.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { NotFound, PlayerNotFound } from "#rpc/errors/codes"
import { type EnvironmentId, newId, type PlayerId } from "#rpc/ids"
import type { Ban } from "#rpc/moderation"
import { type AppealsPage, type SanctionRow, SanctionRepository } from "#sql/moderation"
import { Invalidation } from "#server/platform/invalidation"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { appeal, resolve } from "./appeal-rules.ts"
import { ban, lift } from "./bans.ts"
import { appealItem, banResult, sanctionView } from "./views.ts"

const millisPerHour = 3_600_000

/** A player of an environment. */
export interface PlayerRef {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
}

/** Appeal of a player; without `sanctionId` it is against the last ban. */
export interface AppealRequest extends PlayerRef {
  readonly sanctionId: string | undefined
  readonly message: string
}

/** Decision of an operator on an appeal. */
export interface Resolution {
  readonly environmentId: EnvironmentId
  readonly appealId: string
  readonly accept: boolean
  readonly response: string | undefined
}

/** Bans players and resolves their appeals. */
export class Sanctions extends Context.Service<Sanctions>()(
  "server/features/moderation/service/Sanctions",
  {
    make: Effect.gen(function* () {
      const repository = yield* SanctionRepository
      const withLockedPlayer = yield* makeWithLockedPlayer
      return {
        ...(yield* makeBans(withLockedPlayer)),
        ...(yield* makeAppeals(withLockedPlayer)),
        /** Returns the player's bans, newest first. */
        list: Effect.fn("Sanctions.list")(function* (player: PlayerRef) {
          const now = yield* DateTime.now
          return (yield* repository.listByPlayer(player)).map((row) => sanctionView(row, now))
        }),
        /** Returns appeals, the open ones first, then by age. */
        appeals: Effect.fn("Sanctions.appeals")(function* (page: Omit<AppealsPage, "now">) {
          const now = yield* DateTime.now
          const found = yield* repository.appeals({ ...page, now })
          return found.flatMap((row) => appealItem(row, row.displayName, now) ?? [])
        })
      }
    })
  }
) {
  static readonly layer = Layer.effect(Sanctions, this.make)
}

/** Input of a change: the player with its locked row, and its bans. */
interface LockedPlayer {
  readonly displayName: string
  /** Bans, newest first. */
  readonly bans: ReadonlyArray<SanctionRow>
  readonly now: DateTime.Utc
}

type WithLockedPlayer = <A, E, R>(
  player: PlayerRef,
  change: (locked: LockedPlayer) => Effect.Effect<A, E, R>
) => Effect.Effect<A, E | PlayerNotFound, R>

/** Runs a change in a transaction that locks the player's row, so changes of one player serialize. */
const makeWithLockedPlayer = Effect.gen(function* () {
  const repository = yield* SanctionRepository
  const sql = yield* SqlClient.SqlClient
  const withLockedPlayer: WithLockedPlayer = (player, change) =>
    Effect.gen(function* () {
      const locked = yield* repository.lockPlayer(player)
      if (Option.isNone(locked)) return yield* new PlayerNotFound()
      const bans = yield* repository.listByPlayer(player)
      return yield* change({ ...locked.value, bans, now: yield* DateTime.now })
    }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
  return withLockedPlayer
})

const makeBans = Effect.fnUntraced(function* (withLockedPlayer: WithLockedPlayer) {
  const invalidation = yield* Invalidation
  const repository = yield* SanctionRepository
  const sql = yield* SqlClient.SqlClient
  const playerStatuses = yield* PlayerStatusCache
  const random = yield* SecureRandom.SecureRandom
  return {
    ban: Effect.fn("Sanctions.ban")(
      function* (player: PlayerRef, { durationHours, publicNote, reason }: Ban) {
        const id = yield* newId.sanction
        return yield* withLockedPlayer(
          player,
          Effect.fnUntraced(function* ({ bans: [last], now }) {
            const expiresAt =
              durationHours === undefined
                ? null
                : DateTime.add(now, { milliseconds: Math.ceil(durationHours * millisPerHour) })
            const texts = { reason: reason ?? null, note: publicNote ?? null }
            const next = ban(last, { ...player, ...texts, id, expiresAt }, now)
            yield* repository.save(next)
            const revoked = yield* repository.revokeSessions({
              ...player,
              sanctionId: next.id,
              now
            })
            yield* playerStatuses.invalidate(player.environmentId, player.playerId)
            // Reply only after all nodes have closed the player's connections.
            yield* sql.afterCommit(invalidation.awaitAcknowledgements)
            return banResult(player.playerId, next, revoked, now)
          })
        )
      },
      Effect.provideService(SecureRandom.SecureRandom, random)
    ),
    /** Lifts the active ban, if any. */
    unban: Effect.fn("Sanctions.unban")(function* (player: PlayerRef) {
      return yield* withLockedPlayer(
        player,
        Effect.fnUntraced(function* ({ bans: [last], now }) {
          if (last !== undefined) {
            yield* repository.save(lift(last, now))
            yield* playerStatuses.invalidate(player.environmentId, player.playerId)
          }
          return banResult(player.playerId, undefined, 0, now)
        })
      )
    })
  }
})

const makeAppeals = Effect.fnUntraced(function* (withLockedPlayer: WithLockedPlayer) {
  const repository = yield* SanctionRepository
  const playerStatuses = yield* PlayerStatusCache
  const random = yield* SecureRandom.SecureRandom
  return {
    appeal: Effect.fn("Sanctions.appeal")(
      function* ({ message, sanctionId, ...player }: AppealRequest) {
        const id = yield* newId.appeal
        return yield* withLockedPlayer(
          player,
          Effect.fnUntraced(function* ({ bans, now }) {
            const target =
              sanctionId === undefined ? bans[0] : bans.find(({ id }) => id === sanctionId)
            if (target === undefined) return yield* new NotFound()
            const next = yield* Effect.fromResult(appeal(target, { id, message }, now))
            yield* repository.save(next)
            return sanctionView(next, now)
          })
        ).pipe(Effect.catchTag("player_not_found", () => Effect.fail(new NotFound())))
      },
      Effect.provideService(SecureRandom.SecureRandom, random)
    ),
    resolve: Effect.fn("Sanctions.resolve")(function* (resolution: Resolution) {
      const { accept, appealId, environmentId } = resolution
      const response = resolution.response ?? null
      const found = yield* repository.findByAppeal(environmentId, appealId)
      if (Option.isNone(found)) return yield* new NotFound()
      const { playerId } = found.value
      return yield* withLockedPlayer(
        { environmentId, playerId },
        Effect.fnUntraced(function* ({ bans, displayName, now }) {
          const appealed = bans.find((ban) => ban.appealId === appealId)
          if (appealed === undefined) return yield* new NotFound()
          const next = yield* Effect.fromResult(resolve(appealed, { accept, response }, now))
          yield* repository.save(next)
          if (accept) yield* playerStatuses.invalidate(environmentId, playerId)
          return appealItem(next, displayName, now) ?? (yield* new NotFound())
        })
      ).pipe(Effect.catchTag("player_not_found", () => Effect.fail(new NotFound())))
    })
  }
})
