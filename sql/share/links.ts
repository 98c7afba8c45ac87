/** Share links of players, and labelled links of developers. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AgeBand } from "#rpc/ages"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { ShareData, ShareKind } from "#rpc/share/api"
import { share } from "#rpc/share/limits"
import { isPlayerGone, orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

/** A link of a player, or with a label instead of a player one of the developer. */
const LinkRow = Schema.Struct({
  id: Schema.String,
  environmentId: EnvironmentId,
  playerId: Schema.NullOr(PlayerId),
  kind: ShareKind,
  score: Schema.NullOr(Schema.Finite),
  showName: Schema.Boolean,
  label: Schema.NullOr(Schema.String),
  /** What the app gave to the link, such as the code of a room. */
  data: Schema.NullOr(Schema.fromJsonString(ShareData)),
  createdAt: Time
})
export type LinkRow = typeof LinkRow.Type

/** A link with the name and the declared age band of its player, and whether the player is banned. */
const FoundLink = Schema.Struct({
  ...LinkRow.fields,
  isBanned: Schema.Boolean,
  displayName: Schema.NullOr(Schema.String),
  declaredAgeBand: Schema.NullOr(AgeBand)
})
export type FoundLink = typeof FoundLink.Type

const LinkKey = Schema.Struct({ environmentId: EnvironmentId, id: Schema.String, now: Time })

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.findAll({
    Request: LinkRow,
    Result: Schema.Struct({ id: Schema.String }),
    execute: (row) => sql`
        insert into share_links ${sql.insert(row)} on conflict (id) do nothing returning id`
  }),
  prune: SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, playerId }) => sql`
        delete from share_links where id in (
          select id from share_links
          where player_id = ${playerId} and environment_id = ${environmentId}
          order by created_at desc, id offset ${share.linksPerPlayer})`
  }),
  find: SqlSchema.findOneOption({
    Request: LinkKey,
    Result: FoundLink,
    execute: ({ environmentId, id, now }) => sql`
        select l.*, p.display_name, p.declared_age_band, exists (
          select from sanctions s where s.player_id = l.player_id
            and s.environment_id = l.environment_id and s.lifted_at is null
            and (s.expires_at is null or s.expires_at > ${now})) as is_banned
        from share_links l left join players p on p.id = l.player_id
        where l.environment_id = ${environmentId} and l.id = ${id}`
  }),
  ofPlayer: SqlSchema.findAll({
    Request: Owner,
    Result: LinkRow,
    execute: ({ environmentId, playerId }) => sql`
        select * from share_links
        where player_id = ${playerId} and environment_id = ${environmentId}
        order by created_at, id`
  }),
  environmentOf: SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Schema.Struct({ environmentId: EnvironmentId }),
    execute: (id) => sql`select environment_id from share_links where id = ${id}`
  })
})

/** Repository of `share_links`. */
export class ShareLinkRepository extends Context.Service<ShareLinkRepository>()(
  "sql/share/links/ShareLinkRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { environmentOf, find, insert, ofPlayer, prune } = statements(sql)
      return {
        /**
         * Stores a link; false if another one has its id. A player keeps the newest links. None if the
         * player was deleted.
         */
        insert: (row: LinkRow) =>
          Effect.gen(function* () {
            const rows = yield* insert(row)
            const { environmentId, playerId } = row
            if (playerId !== null) yield* prune({ environmentId, playerId })
            return Option.some(rows.length === 1)
          }).pipe(
            sql.withTransaction,
            Effect.catchIf(isPlayerGone, () => Effect.succeedNone),
            orDieWithTimeout
          ),
        find: (key: typeof LinkKey.Type) => orDieWithTimeout(find(key)),
        /** Lists all links of a player, oldest first. */
        ofPlayer: (owner: typeof Owner.Type) => orDieWithTimeout(ofPlayer(owner)),
        /** Returns the environment of a link of any kind. */
        environmentOf: (id: string) => orDieWithTimeout(environmentOf(id))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ShareLinkRepository, this.make)
}
