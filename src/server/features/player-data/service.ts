/**
 * All that is stored about a player: shown, and deleted for good (spec section 5, rule 13; decisions
 * 3.2.11-12). For the players themselves, and for operators.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { ageProfileOf } from "#rpc/ages"
import { PlayerNotFound, Unavailable } from "#rpc/errors/codes"
import type { PlayerExport } from "#rpc/player-data"
import { IdentityRepository } from "#sql/identities"
import { PlayerDataRepository } from "#sql/player-data/repository"
import { PlayerRepository } from "#sql/players"
import { Channels } from "../channels/management.ts"
import { Configs } from "../config/service.ts"
import { identityView } from "../identities/view.ts"
import { type PlayerRef, Sanctions } from "../moderation/service.ts"
import { ProviderGrants } from "../oauth/grants.ts"
import { playerView } from "../players/view.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"

type Rows = Effect.Success<ReturnType<PlayerDataRepository["Service"]["read"]>>

/** An export but for the data of its saves, which is JSON text that goes out as it is. */
export interface ExportedPlayer {
  readonly view: Omit<PlayerExport, "saves">
  readonly saves: Rows["saves"]
}

/** What is stored about players. */
export class PlayerData extends Context.Service<
  PlayerData,
  {
    readonly export: (player: PlayerRef) => Effect.Effect<ExportedPlayer, PlayerNotFound>
    /**
     * Irreversible: rooms and channels are left, sockets closed, everything is forgotten. `noted` goes
     * into the transaction that forgets.
     */
    readonly delete: <R>(
      player: PlayerRef,
      noted: Effect.Effect<void, never, R>
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

const makeExport = Effect.gen(function* () {
  const configs = yield* Configs
  const identities = yield* IdentityRepository
  const players = yield* PlayerRepository
  const records = yield* PlayerDataRepository
  const sanctions = yield* Sanctions
  return Effect.fn("PlayerData.export")(function* (ref: PlayerRef) {
    const { environmentId, playerId } = ref
    const found = yield* players.find(environmentId, playerId)
    if (Option.isNone(found)) return yield* new PlayerNotFound()
    const rows = yield* records.read(ref)
    const [choices] = rows.choices
    if (choices === undefined) return yield* new PlayerNotFound()
    const linked = yield* identities.ofPlayer(ref)
    const { audience } = (yield* configs.current(environmentId)).config
    const bans = yield* sanctions.list(ref)
    const view: ExportedPlayer["view"] = {
      exportedAt: iso(yield* DateTime.now),
      player: playerView(found.value),
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
      shareLinks: [],
      xProfile: null
    }
    return { view, saves: rows.saves }
  })
})

/** Takes a player off every list of a channel. */
const listOps = ["uninvite", "disallowSend", "unmute", "unban"] as const

const patience = "5 seconds"

const makeDelete = Effect.gen(function* () {
  const grants = yield* ProviderGrants
  const channels = yield* Channels
  const records = yield* PlayerDataRepository
  const sql = yield* SqlClient.SqlClient
  const standings = yield* PlayerStatusCache

  /** The channel owns its row: it is the one to forget a name. */
  const unlist = (environmentId: string, name: string, target: string) =>
    Effect.forEach(listOps, (op) => channels.of(environmentId, name).Moderate({ target, op }), {
      discard: true
    }).pipe(
      Effect.catchTag("channel_not_found", () => Effect.void),
      Effect.timeout(patience),
      Effect.catch(() => Effect.fail(new Unavailable()))
    )

  const erase = Effect.fnUntraced(function* (player: PlayerRef) {
    if (!(yield* records.delete(player, yield* DateTime.now))) return yield* new PlayerNotFound()
    yield* standings.invalidate(player.environmentId, player.playerId)
  })

  return Effect.fn("PlayerData.delete")(function* <R>(
    player: PlayerRef,
    noted: Effect.Effect<void, never, R>
  ) {
    const { environmentId, playerId } = player
    // First, so that whoever tries again after a failure finds the player, and all that is left.
    const named = yield* records.channels(player)
    yield* Effect.forEach(named, (name) => unlist(environmentId, name, playerId), {
      discard: true
    })
    const granted = yield* grants.collect(environmentId, playerId)
    yield* sql
      .withTransaction(Effect.andThen(erase(player), noted))
      .pipe(Effect.catchTag("SqlError", Effect.die))
    yield* grants.revoke(granted)
  })
})
