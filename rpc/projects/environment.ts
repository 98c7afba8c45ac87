/** One environment of a project as the dashboard and agents read it: key figures, players and what is alive. */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { AgeProfile } from "../ages.ts"
import { KeyKind } from "../auth.ts"
import { PlayerNotFound, TooManyKeys, wire } from "../errors/codes.ts"
import { group } from "../feature.ts"
import { PlayerId } from "../ids.ts"
import { OperatorSanction } from "../moderation.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "../mounts.ts"
import { operation, readBy } from "../operations.ts"
import { PageLimit } from "../pages.ts"
import { Identity } from "../players.ts"
import { PublicRoom } from "../rooms/api.ts"
import { SaveItem } from "../saves.ts"
import { StatsRead } from "../stats.ts"
import { Timestamp } from "../text.ts"
import { projectLimits } from "./limits.ts"
import { ProjectKey } from "./projects.ts"

/**
 * A player in a list. `lastSeenAt` is the time of the last request with a player token, or of the open
 * socket, up to six minutes old.
 */
export const ListedPlayer = Schema.Struct({
  id: PlayerId,
  displayName: Schema.String,
  isGuest: Schema.Boolean,
  createdAt: Timestamp,
  lastSeenAt: Timestamp,
  banned: Schema.Boolean,
  identities: Schema.Array(Identity)
}).annotate({
  identifier: "ListedPlayer",
  description: "A player in a list. `lastSeenAt` is up to six minutes old."
})
export type ListedPlayer = typeof ListedPlayer.Type

/** A player with all stored details; unknown values are null. */
export const PlayerDetail = Schema.Struct({
  ...ListedPlayer.fields,
  email: Schema.NullOr(Schema.String),
  emailVerified: Schema.Boolean,
  age: AgeProfile,
  bannedAt: Schema.NullOr(Timestamp),
  banReason: Schema.NullOr(Schema.String),
  banExpiresAt: Schema.NullOr(Timestamp),
  /** The player's bans, newest first, with the operator's reasons. */
  sanctions: Schema.Array(OperatorSanction),
  saves: Schema.Array(SaveItem),
  stats: StatsRead.fields.stats,
  sessions: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      createdAt: Timestamp,
      lastUsedAt: Timestamp,
      userAgent: Schema.NullOr(Schema.String)
    })
  )
}).annotate({
  identifier: "PlayerDetail",
  description: "A player as operators see it: bans, saves, stats and sessions."
})
export type PlayerDetail = typeof PlayerDetail.Type

/** Requests of a minute or an hour: all, and those with a 4xx and with a 5xx response. */
export const RequestCount = Schema.Struct({
  start: Timestamp,
  requests: Schema.Int,
  clientErrors: Schema.Int,
  serverErrors: Schema.Int
}).annotate({
  identifier: "RequestCount",
  description: "Requests by time."
})
export type RequestCount = typeof RequestCount.Type

/**
 * Key figures of an environment. Days are UTC dates; the last one is today. `storage` is in bytes.
 * `requests` counts requests with a key of the environment and calls of its functions, some seconds behind.
 */
export const Overview = Schema.Struct({
  players: Schema.Struct({ total: Schema.Int, guests: Schema.Int }),
  dailyActives: Schema.Array(Schema.Struct({ date: Schema.String, count: Schema.Int })),
  configVersion: Schema.Int,
  keys: Schema.Array(ProjectKey),
  online: Schema.Int,
  requests: Schema.Struct({
    minutes: Schema.Array(RequestCount),
    hours: Schema.Array(RequestCount)
  }),
  storage: Schema.Struct({ savesBytes: Schema.Int, limitBytes: Schema.Int })
}).annotate({
  identifier: "Overview",
  description: "Key figures. Days are UTC dates; the last one is today."
})
export type Overview = typeof Overview.Type

/**
 * Live rooms, queues and channels, some seconds old: at most 500 rooms and 500 channels. `players` of a
 * room counts seats, `connected` the seats with a connection. `truncated` means that there are more.
 */
export const LiveView = Schema.Struct({
  rooms: Schema.Array(
    Schema.Struct({
      ...PublicRoom.fields,
      private: Schema.Boolean,
      locked: Schema.Boolean,
      hostId: Schema.NullOr(Schema.String),
      connected: Schema.Int
    })
  ),
  queues: Schema.Array(Schema.Struct({ mode: Schema.String, waiting: Schema.Int })),
  channels: Schema.Array(
    Schema.Struct({ name: Schema.String, members: Schema.Int, voice: Schema.Int })
  ),
  connections: Schema.Int,
  truncated: Schema.Boolean
}).annotate({
  identifier: "LiveView",
  description: "What is alive in an environment: rooms, queues, channels and connections."
})
export type LiveView = typeof LiveView.Type

/** Cursor of a page: the last player's id, in a search by name followed by the name. */
const PlayerCursor = Schema.String.check(
  Schema.isPattern(/^pl_[0-9A-HJKMNP-TV-Z]{26}(?:\.[A-Za-z0-9_-]{1,512})?$/, {
    message: "Expected the nextCursor of a previous response"
  })
)

/** A part of the players. `active` were seen today in UTC; `accounts` have a sign-in method. */
export const PlayerFilter = Schema.Literals(["active", "guests", "accounts", "banned"])
export type PlayerFilter = typeof PlayerFilter.Type

/** Order of a list. A search by name is always in the order of names. */
export const PlayerOrder = Schema.Literals(["newest", "oldest", "name"])
export type PlayerOrder = typeof PlayerOrder.Type

const Search = {
  filter: Schema.optionalKey(PlayerFilter),
  sort: Schema.optionalKey(PlayerOrder),
  q: Schema.optionalKey(
    Schema.String.check(
      Schema.isMaxLength(projectLimits.searchMaxCharacters),
      Schema.isPattern(/^\P{Cc}*$/u, { message: "Expected no control characters" })
    )
  ),
  cursor: Schema.optionalKey(PlayerCursor),
  limit: Schema.optionalKey(PageLimit)
}

const viewsOf = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(
    id,
    "project",
    "Environment",
    "Keys, usage, players and live rooms of one environment."
  ).add(
    HttpApiEndpoint.get("overview", "/overview", { params, success: Overview }).annotateMerge(
      operation("Read key figures", readBy("overview_read"))
    ),
    HttpApiEndpoint.get("players", "/players", {
      params,
      query: Search,
      success: Schema.Struct({
        players: Schema.Array(ListedPlayer),
        total: Schema.NullOr(Schema.Int),
        nextCursor: Schema.NullOr(Schema.String)
      }).annotate({
        identifier: "PlayerPage",
        description:
          "A page of players. The first one has the `total` of all pages, later ones null. `nextCursor` is " +
          "null on the last one."
      })
    }).annotateMerge(
      operation(
        "List players, newest first; with q find them by id, email or name prefix",
        readBy("players_search")
      )
    ),
    HttpApiEndpoint.get("player", "/players/:playerId", {
      params: { ...params, playerId: Schema.String },
      success: Schema.Struct({ player: PlayerDetail }).annotate({
        identifier: "PlayerDetailResponse",
        description: "One player as operators see it."
      }),
      error: wire(PlayerNotFound)
    }).annotateMerge(
      operation("Read a player with bans, saves, stats and sessions", readBy("player_get"))
    ),
    HttpApiEndpoint.get("realtime", "/realtime", { params, success: LiveView }).annotateMerge(
      operation("List live rooms, queues and channels", readBy("rooms_list"))
    )
  )

/** `/v1/projects/:projectId/environments/:env`: keys and dashboard reads of one environment. */
export class EnvironmentApi extends underProject(
  viewsOf("environment", projectParams).add(
    HttpApiEndpoint.post("createKey", "/keys", {
      params: projectParams,
      payload: Schema.Struct({ kind: KeyKind }),
      success: Schema.Struct({ key: ProjectKey, plain: Schema.String }).annotate({
        identifier: "CreatedKey",
        description: "A new key. `plain` is shown only here."
      }),
      error: wire(TooManyKeys)
    }).annotateMerge(
      operation("Create a key; the response shows it in plain text once", { audit: "key.create" })
    )
  )
) {}

/** `/v1/admin/...` in the process: the same reads for agents. */
export class EnvironmentViewsApi extends underKey(viewsOf("environmentViews", keyParams)) {}
