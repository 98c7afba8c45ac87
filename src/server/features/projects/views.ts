/**
 * Reads of one environment for the dashboard. Players, daily active players and rooms come from the
 * database. Queues and channels come from the last report of each node.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { ageProfileOf } from "#rpc/ages"
import type { EnvironmentCaller } from "#rpc/auth"
import { isGivenEmail } from "#rpc/email"
import { PlayerNotFound } from "#rpc/errors/codes"
import { type EnvironmentId, PlayerId } from "#rpc/ids"
import { http } from "#rpc/limits"
import { liveLimits } from "#rpc/live"
import type { ListedPlayer, LiveView, PlayerFilter, PlayerOrder } from "#rpc/projects/environment"
import { IdentityRepository } from "#sql/identities"
import { SanctionRepository } from "#sql/moderation"
import { type LiveReport, LiveRepository } from "#sql/live/reports"
import { PlayerListRepository, type PlayerMatch } from "#sql/projects/player-list"
import { type LiveRoom, type SeenPlayer, ViewRepository } from "#sql/projects/view"
import { SaveRepository } from "#sql/saves"
import { StatRepository } from "#sql/stats"
import { emailForms } from "#server/platform/email-forms"
import { pageOf } from "#server/platform/pages"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import { banView, operatorView } from "../moderation/views.ts"
import { playerView } from "../players/view.ts"
import { playerStatusOf } from "../players/status-cache.ts"
import { requestHistory } from "./request-counts.ts"
import { Projects } from "./service.ts"

const activeDays = 14

const isPlayerId = Schema.is(PlayerId)

/** Search for players: `q` is an id, an email or the beginning of a display name. */
export interface PlayerSearch {
  readonly q?: string
  readonly filter?: PlayerFilter
  /** Default: the newest first. A search by name is always in the order of names. */
  readonly sort?: PlayerOrder
  readonly cursor?: string
  readonly limit?: number
}

/** Reads the dashboard's views. */
export class ProjectViews extends Context.Service<ProjectViews>()(
  "server/features/projects/views/ProjectViews",
  {
    make: Effect.gen(function* () {
      return {
        overview: yield* makeOverview,
        players: yield* makeLists,
        player: yield* makeDetail,
        realtime: yield* makeRealtime
      }
    })
  }
) {
  static readonly layer = Layer.effect(ProjectViews, this.make)
}

const listView = (row: SeenPlayer, banned: boolean): ListedPlayer => {
  const { createdAt, displayName, id, identities, isGuest } = playerView(row)
  const lastSeenAt = DateTime.formatIso(row.lastSeenAt)
  return { id, displayName, isGuest, createdAt, lastSeenAt, banned, identities }
}

/** Returns the cursor of a list by name: the player's id and its sort name. */
const cursorOf = (id: PlayerId, name: string) => `${id}.${Buffer.from(name).toString("base64url")}`

/** Decodes a cursor. The cursor of a list by id has an empty name. */
const positionOf = (cursor: string) => {
  const [id = "", name = ""] = cursor.split(".")
  // A forged cursor may decode to NUL characters, which Postgres text rejects.
  const text = Buffer.from(name, "base64url").toString("utf8").replaceAll("\0", "")
  return { id: PlayerId.make(id), name: text }
}

/** Returns the email identity's address, or else an address that a provider reported. */
const makeEmailOf = Effect.map(IdentityRepository, (repository) =>
  Effect.fnUntraced(function* (owner: Parameters<typeof repository.ofPlayer>[0]) {
    const all = yield* repository.ofPlayer(owner)
    const withEmail = all.filter(({ email }) => email !== null)
    const identity = withEmail.find(({ provider }) => provider === "email") ?? withEmail[0]
    return { email: identity?.email ?? null, emailVerified: identity?.emailVerified ?? false }
  })
)

/** Adds the `banned` flag to the players of a list. */
const makeWithBans = Effect.map(SanctionRepository, (sanctions) =>
  Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    players: ReadonlyArray<SeenPlayer>
  ): Effect.fn.Return<ReadonlyArray<ListedPlayer>> {
    const now = yield* DateTime.now
    const ids = players.map(({ id }) => id)
    const statuses = yield* sanctions.playerStatuses(environmentId, ids)
    const banned = new Set(
      statuses
        .filter((row) => playerStatusOf(row, now).banned !== undefined)
        .map(({ playerId }) => playerId)
    )
    return players.map((player) => listView(player, banned.has(player.id)))
  })
)

const makeFindPlayer = Effect.map(ViewRepository, (repository) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: string) {
    if (!isPlayerId(playerId)) return Option.none()
    return yield* repository.player({ environmentId, playerId })
  })
)

/** Returns what a search compares, and what it compares if nobody matches that. */
const matchesOf = (q: string): readonly [PlayerMatch, PlayerMatch?] => {
  if (q === "") return [{ kind: "all" }]
  const byName: PlayerMatch = { kind: "prefix", prefix: q }
  if (isPlayerId(q)) return [{ kind: "id", id: q }, byName]
  return isGivenEmail(q) ? [{ kind: "email", forms: emailForms(q) }, byName] : [byName]
}

/** Finds players by id, by email or by name prefix; without `q` lists all. */
const makeLists = Effect.gen(function* () {
  const repository = yield* PlayerListRepository
  const withBans = yield* makeWithBans
  const list = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    match: PlayerMatch,
    { cursor, filter, limit = http.pageDefault, sort = "newest" }: PlayerSearch
  ) {
    const now = yield* DateTime.now
    const day = DateTime.formatIsoDateUtc(now)
    const selection = { environmentId, match, filter: filter ?? null, now, day }
    const order = match.kind === "prefix" ? "name" : sort
    const after = cursor === undefined ? null : positionOf(cursor)
    const found = yield* repository.list({ ...selection, order, after, limit: limit + 1 })
    const { nextCursor, rows } = pageOf(found, limit, ({ id, sortName }) =>
      order === "name" ? cursorOf(id, sortName) : id
    )
    // Only the first page has the number of players on all pages.
    const total = cursor === undefined ? yield* repository.count(selection) : null
    return { players: yield* withBans(environmentId, rows), total, nextCursor }
  })
  return Effect.fn("ProjectViews.players")(function* (
    environmentId: EnvironmentId,
    search: PlayerSearch
  ) {
    const [exact, byName] = matchesOf((search.q ?? "").trim().normalize("NFC"))
    const page = yield* list(environmentId, exact, search)
    if (page.players.length > 0 || byName === undefined) return page
    return yield* list(environmentId, byName, search)
  })
})

const makeDetail = Effect.gen(function* () {
  const configs = yield* Configs
  const repository = yield* ViewRepository
  const find = yield* makeFindPlayer
  const emailOf = yield* makeEmailOf
  const sanctions = yield* SanctionRepository
  const saves = yield* SaveRepository
  const stats = yield* StatRepository
  return Effect.fn("ProjectViews.player")(function* (
    environmentId: EnvironmentId,
    rawPlayerId: string
  ) {
    const found = yield* find(environmentId, rawPlayerId)
    if (Option.isNone(found)) return yield* new PlayerNotFound()
    const { id: playerId } = found.value
    const owner = { environmentId, playerId }
    const totals = yield* stats.totals(environmentId, playerId)
    const now = yield* DateTime.now
    const sessions = yield* repository.sessions({ ...owner, now })
    const bans = yield* sanctions.listByPlayer(owner)
    const ban = banView(bans[0], now)
    const { audience } = (yield* configs.current(environmentId)).config
    return {
      ...listView(found.value, ban.banned),
      ...ban,
      ...(yield* emailOf(owner)),
      age: ageProfileOf(audience, found.value.declaredAgeBand),
      sanctions: bans.map((row) => operatorView(row, now)),
      saves: (yield* saves.list(owner)).map(({ updatedAt, ...save }) => ({
        ...save,
        updatedAt: DateTime.formatIso(updatedAt)
      })),
      stats: Object.fromEntries(totals.map(({ stat, total }) => [stat, total])),
      sessions: sessions.map(({ createdAt, id, rotatedAt }) => ({
        id,
        createdAt: DateTime.formatIso(createdAt),
        lastUsedAt: DateTime.formatIso(rotatedAt),
        userAgent: null
      }))
    }
  })
})

/** Reads the recent reports of nodes. Older reports are of stopped nodes. */
const makeReports = Effect.map(LiveRepository, (repository) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const since = DateTime.subtract(yield* DateTime.now, { milliseconds: liveLimits.trustMillis })
    return yield* repository.read({ environmentId, since })
  })
)

const connectionsOf = (reports: ReadonlyArray<LiveReport>): number =>
  reports.reduce((sum, { connections }) => sum + connections, 0)

const makeOverview = Effect.gen(function* () {
  const repository = yield* ViewRepository
  const configs = yield* Configs
  const projects = yield* Projects
  const reportsOf = yield* makeReports
  const saves = yield* SaveRepository
  const requests = yield* requestHistory
  const limitBytes = (yield* Settings).saves.environmentBytes
  return Effect.fn("ProjectViews.overview")(function* (environment: EnvironmentCaller) {
    const { environmentId, name, projectId } = environment
    const now = yield* DateTime.now
    const days = Array.from({ length: activeDays }, (_, i) =>
      DateTime.formatIsoDateUtc(DateTime.subtract(now, { days: activeDays - 1 - i }))
    )
    const actives = yield* repository.dailyActives(environmentId, days[0] ?? "")
    const counts = new Map(actives.map(({ count, date }) => [date, count]))
    return {
      players: yield* repository.countPlayers(environmentId),
      dailyActives: days.map((date) => ({ date, count: counts.get(date) ?? 0 })),
      configVersion: (yield* configs.current(environmentId)).version,
      keys: yield* projects.keys(projectId, name),
      online: connectionsOf(yield* reportsOf(environmentId)),
      requests: yield* requests(environmentId),
      storage: { savesBytes: yield* saves.bytesOfEnvironment(environmentId), limitBytes }
    }
  })
})

const roomView = ({ createdAt, ...room }: LiveRoom): LiveView["rooms"][number] => ({
  ...room,
  createdAt: DateTime.formatIso(createdAt)
})

/** Merges the queues of all nodes. Two nodes report the same queue while it moves between them. */
const queuesOf = (reports: ReadonlyArray<LiveReport>): LiveView["queues"] => {
  const waiting = new Map<string, number>()
  for (const { document } of reports) {
    for (const queue of document.queues) {
      waiting.set(queue.mode, Math.max(queue.waiting, waiting.get(queue.mode) ?? 0))
    }
  }
  return Array.from(waiting, ([mode, tickets]) => ({ mode, waiting: tickets }))
}

const makeRealtime = Effect.gen(function* () {
  const repository = yield* ViewRepository
  const reportsOf = yield* makeReports
  return Effect.fn("ProjectViews.realtime")(function* (environmentId: EnvironmentId) {
    const rooms = yield* repository.rooms(environmentId, liveLimits.listedMax + 1)
    const reports = yield* reportsOf(environmentId)
    const channels = reports.flatMap(({ document }) => document.channels)
    const truncated =
      rooms.length > liveLimits.listedMax ||
      channels.length > liveLimits.listedMax ||
      reports.some(({ document }) => document.truncated)
    return {
      rooms: rooms.slice(0, liveLimits.listedMax).map(roomView),
      queues: queuesOf(reports),
      channels: channels.slice(0, liveLimits.listedMax),
      connections: connectionsOf(reports),
      truncated
    }
  })
})
