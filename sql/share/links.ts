/** Share links of players, and labelled links of developers. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AgeBand } from "#rpc/ages"
import { EnvironmentName } from "#rpc/auth"
import { EnvironmentId, PlayerId, ProjectId } from "#rpc/ids"
import { share as limits } from "#rpc/limits"
import { ShareKind } from "#rpc/share/api"
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
  createdAt: Time
})
export type LinkRow = typeof LinkRow.Type

/** A link with the name and the declared age band of its player. */
const FoundLink = Schema.Struct({
  ...LinkRow.fields,
  displayName: Schema.NullOr(Schema.String),
  declaredAgeBand: Schema.NullOr(AgeBand)
})
export type FoundLink = typeof FoundLink.Type

const LinkKey = Schema.Struct({ environmentId: EnvironmentId, id: Schema.String })

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

/** The environment of an open project, with the project's name. */
const Labelled = Schema.Struct({
  environmentId: EnvironmentId,
  projectId: ProjectId,
  name: EnvironmentName,
  projectName: Schema.String,
  slug: Schema.String
})
export type LabelledEnvironment = typeof Labelled.Type

const statements = (sql: SqlClient.SqlClient) => {
  const open = sql.literal("p.deleted_at is null and p.removed_at is null")
  const labelled = sql.literal(
    "e.id as environment_id, e.project_id, e.name, p.name as project_name, p.slug"
  )
  return {
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
          order by created_at desc, id offset ${limits.linksPerPlayer})`
    }),
    find: SqlSchema.findOneOption({
      Request: LinkKey,
      Result: FoundLink,
      execute: ({ environmentId, id }) => sql`
        select l.*, p.display_name, p.declared_age_band
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
    byLabel: SqlSchema.findOneOption({
      Request: Schema.Struct({ slug: Schema.String, name: EnvironmentName }),
      Result: Labelled,
      execute: ({ name, slug }) => sql`
        select ${labelled} from environments e join projects p on p.id = e.project_id
        where p.slug = ${slug} and e.name = ${name} and ${open}`
    }),
    byId: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: Labelled,
      execute: (id) => sql`
        select ${labelled} from environments e join projects p on p.id = e.project_id
        where e.id = ${id} and ${open}`
    }),
    ofLink: SqlSchema.findOneOption({
      Request: Schema.String,
      Result: Labelled,
      execute: (id) => sql`
        select ${labelled} from share_links l join environments e on e.id = l.environment_id
        join projects p on p.id = e.project_id
        where l.id = ${id} and ${open}`
    })
  }
}

/** Repository of `share_links`. */
export class ShareLinkRepository extends Context.Service<ShareLinkRepository>()(
  "sql/share/links/ShareLinkRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { byId, byLabel, find, insert, ofLink, ofPlayer, prune } = statements(sql)
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
        /** All links of a player, oldest first. */
        ofPlayer: (owner: typeof Owner.Type) => orDieWithTimeout(ofPlayer(owner)),
        /** The environment behind a slug, if its project is open. */
        environmentOf: (slug: string, name: EnvironmentName) =>
          orDieWithTimeout(byLabel({ slug, name })),
        environment: (id: EnvironmentId) => orDieWithTimeout(byId(id)),
        /** The environment of a link, whatever it is. */
        environmentOfLink: (id: string) => orDieWithTimeout(ofLink(id))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ShareLinkRepository, this.make)
}
