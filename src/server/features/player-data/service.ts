/**
 * Exports all data of a player, and deletes a player permanently. Players and operators share both.
 */
import { Context, DateTime, Effect, Layer, Option, type Scope, Semaphore, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { ageProfileOf } from "#rpc/ages"
import { PlayerNotFound, RateLimited, Unavailable } from "#rpc/errors/codes"
import { exports as limits } from "#rpc/limits"
import type { PlayerExport } from "#rpc/player-data"
import { IdentityRepository } from "#sql/identities"
import { type ExportedSave, PlayerDataRepository } from "#sql/player-data/repository"
import { PlayerRepository } from "#sql/players"
import { ShareLinkRepository } from "#sql/share/links"
import { XProfileRepository } from "#sql/share/x-profiles"
import { Channels } from "../channels/service.ts"
import { Configs } from "../config/service.ts"
import { identityView } from "../identities/view.ts"
import { type PlayerRef, Sanctions } from "../moderation/service.ts"
import { ProviderGrants } from "../oauth/grants.ts"
import { playerView } from "../players/view.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"

type Rows = Effect.Success<ReturnType<PlayerDataRepository["Service"]["read"]>>

/** Export of a player. */
export interface ExportedPlayer {
  readonly view: Omit<PlayerExport, "saves">
  /**
   * Reads one save per pull. Sends its data unparsed, since it is JSON text. Fails at the end after a
   * concurrent deletion of the player.
   */
  readonly saves: Stream.Stream<ExportedSave, PlayerNotFound>
}

/** Exports and deletes player data. */
export class PlayerData extends Context.Service<
  PlayerData,
  {
    /**
     * Exports a player until the scope closes. A second concurrent export of the player fails with
     * `rate_limited`.
     */
    readonly export: (
      player: PlayerRef
    ) => Effect.Effect<ExportedPlayer, PlayerNotFound | RateLimited, Scope.Scope>
    /**
     * Deletes a player irreversibly: it leaves its rooms and channels, and its sockets close. `record`
     * runs in the transaction of the deletion, for example to write an audit event.
     */
    readonly delete: <R>(
      player: PlayerRef,
      record: Effect.Effect<void, never, R>
    ) => Effect.Effect<void, PlayerNotFound | Unavailable, R>
  }
>()("server/features/player-data/service/PlayerData") {
  static readonly layer = Layer.effect(
    PlayerData,
    Effect.gen(function* () {
      return PlayerData.of({ export: yield* makeExport, delete: yield* makeDelete })
    })
  )
}

const iso = DateTime.formatIso

const newsOf = ({ newsChosenAt, newsOptIn }: Rows["choices"][number]) =>
  newsOptIn === null || newsChosenAt === null
    ? null
    : { optIn: newsOptIn, chosenAt: iso(newsChosenAt) }

const makeView = Effect.gen(function* () {
  const configs = yield* Configs
  const identities = yield* IdentityRepository
  const players = yield* PlayerRepository
  const repository = yield* PlayerDataRepository
  const sanctions = yield* Sanctions
  const shareLinks = yield* ShareLinkRepository
  const xProfiles = yield* XProfileRepository
  return Effect.fnUntraced(function* (ref: PlayerRef) {
    const { environmentId, playerId } = ref
    const found = yield* players.find(environmentId, playerId)
    if (Option.isNone(found)) return yield* new PlayerNotFound()
    const rows = yield* repository.read(ref)
    const [choices] = rows.choices
    if (choices === undefined) return yield* new PlayerNotFound()
    const linked = yield* identities.ofPlayer(ref)
    const { audience } = (yield* configs.current(environmentId)).config
    const bans = yield* sanctions.list(ref)
    const view: ExportedPlayer["view"] = {
      exportedAt: iso(yield* DateTime.now),
      player: playerView(found.value),
      lastSeenAt: choices.lastSeenAt === null ? null : iso(choices.lastSeenAt),
      age: {
        ...ageProfileOf(audience, found.value.declaredAgeBand),
        signalledAgeBand: choices.signalledAgeBand
      },
      identities: linked.map((row) => ({ ...identityView(row), subject: row.subject })),
      news: newsOf(choices),
      sessions: rows.sessions.map(({ createdAt, id, lastUsedAt }) => ({
        id,
        createdAt: iso(createdAt),
        lastUsedAt: iso(lastUsedAt),
        userAgent: null
      })),
      stats: Object.fromEntries(rows.stats.map(({ stat, total }) => [stat, total])),
      rejectedStats: rows.signals.map((signal) => ({
        ...signal,
        createdAt: iso(signal.createdAt)
      })),
      sanctions: bans,
      appeals: bans.flatMap(({ appeal, id }) =>
        appeal === undefined ? [] : [{ sanctionId: id, ...appeal }]
      ),
      days: rows.days.map(({ day }) => day),
      rooms: rows.rooms.map(({ id }) => id),
      channels: rows.channels.map(({ name }) => name),
      shareLinks: (yield* shareLinks.ofPlayer(ref)).map(
        ({ createdAt, data, id, kind, score, showName }) => ({
          id,
          kind,
          score,
          showName,
          data,
          createdAt: iso(createdAt)
        })
      ),
      xProfile: Option.getOrNull(yield* xProfiles.own(ref))
    }
    return view
  })
})

const makeExport = Effect.gen(function* () {
  const players = yield* PlayerRepository
  const repository = yield* PlayerDataRepository
  const view = yield* makeView
  const exporting = new Set<string>()
  // Held while rows are read, not while a slow client reads them.
  const reading = yield* Semaphore.make(limits.readsMax)

  const begin = ({ playerId }: PlayerRef) =>
    Effect.suspend(() => {
      if (exporting.has(playerId)) {
        const details = { retryAfterSeconds: limits.retryAfterSeconds }
        return Effect.fail(new RateLimited({ details }))
      }
      exporting.add(playerId)
      return Effect.void
    })

  const savesOf = (ref: PlayerRef) =>
    Stream.unfold(
      "",
      Effect.fnUntraced(function* (after: string) {
        const next = yield* reading.withPermits(1)(repository.nextSave(ref, after))
        if (Option.isSome(next)) return [next.value, next.value.key] as const
        // Asks the database: caches may hear of a deletion after its saves are gone.
        const found = yield* players.find(ref.environmentId, ref.playerId)
        return Option.isNone(found) ? yield* new PlayerNotFound() : undefined
      })
    )

  return Effect.fn("PlayerData.export")(function* (ref: PlayerRef) {
    yield* Effect.acquireRelease(begin(ref), () =>
      Effect.sync(() => exporting.delete(ref.playerId))
    )
    return { view: yield* reading.withPermits(1)(view(ref)), saves: savesOf(ref) }
  })
})

/** Operations that remove a player from every list of a channel. */
const unlistOps = ["uninvite", "disallowSend", "unmute", "unban"] as const

const channelTimeout = "5 seconds"

const makeDelete = Effect.gen(function* () {
  const grants = yield* ProviderGrants
  const channels = yield* Channels
  const repository = yield* PlayerDataRepository
  const sql = yield* SqlClient.SqlClient
  const statuses = yield* PlayerStatusCache

  /**
   * Removes a player from the lists of a channel. Only the channel entity may change its document, so
   * this calls the entity.
   */
  const unlist = (environmentId: string, name: string, target: string) =>
    Effect.forEach(unlistOps, (op) => channels.of(environmentId, name).Moderate({ target, op }), {
      discard: true
    }).pipe(
      Effect.catchTag("channel_not_found", () => Effect.void),
      Effect.timeout(channelTimeout),
      Effect.catch(() => Effect.fail(new Unavailable()))
    )

  const deleteRows = Effect.fnUntraced(function* (player: PlayerRef) {
    if (!(yield* repository.delete(player, yield* DateTime.now))) return yield* new PlayerNotFound()
    yield* statuses.invalidate(player.environmentId, player.playerId)
  })

  return Effect.fn("PlayerData.delete")(function* <R>(
    player: PlayerRef,
    record: Effect.Effect<void, never, R>
  ) {
    const { environmentId, playerId } = player
    // Before the player row: after a failure, a retry still finds the player and its channels.
    const names = yield* repository.channels(player)
    yield* Effect.forEach(names, (name) => unlist(environmentId, name, playerId), {
      discard: true
    })
    const collected = yield* grants.collect(environmentId, playerId)
    yield* sql
      .withTransaction(Effect.andThen(deleteRows(player), record))
      .pipe(Effect.catchTag("SqlError", Effect.die))
    yield* grants.revoke(collected)
  })
})
