/** Lists of an environment's players for the dashboard: a search, a filter, an order and pages. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { PlayerFilter, PlayerOrder } from "#rpc/projects/environment"
import { orDieWithTimeout } from "../database.ts"
import { SeenPlayer, seenColumns } from "./view.ts"

/** What a search compares: nothing, an id, an email in its forms, or the beginning of a name. */
const Match = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("all") }),
  Schema.Struct({ kind: Schema.Literal("id"), id: PlayerId }),
  Schema.Struct({ kind: Schema.Literal("email"), forms: Schema.Array(Schema.String) }),
  Schema.Struct({ kind: Schema.Literal("prefix"), prefix: Schema.String })
])
export type PlayerMatch = typeof Match.Type

const Selection = Schema.Struct({
  environmentId: EnvironmentId,
  match: Match,
  filter: Schema.NullOr(PlayerFilter),
  /** Time at which bans count as active, and its UTC date. */
  now: Schema.DateTimeUtcFromDate,
  day: Schema.String
})
export type PlayerSelection = typeof Selection.Type

const Page = Schema.Struct({
  ...Selection.fields,
  order: PlayerOrder,
  /** The last player of the page before, with its lower-case name in the order of names. */
  after: Schema.NullOr(Schema.Struct({ name: Schema.String, id: Schema.String })),
  limit: Schema.Int
})
type EncodedSelection = typeof Selection.Encoded
type EncodedPage = typeof Page.Encoded

/** A player; `sortName` is the lower-case display name. */
const ListedRow = Schema.Struct({ ...SeenPlayer.fields, sortName: Schema.String })
export type ListedRow = typeof ListedRow.Type

/** Suffix that makes a prefix sort after every name with that prefix. */
const lastCharacter = "\u{10ffff}"

const conditions = (sql: SqlClient.SqlClient) => {
  const filters = {
    guests: () => sql`p.is_guest`,
    accounts: () => sql`not p.is_guest`,
    banned: ({ now }: EncodedSelection) => sql`exists (select from sanctions s
      where s.player_id = p.id and s.lifted_at is null
        and (s.expires_at is null or s.expires_at > ${now}))`,
    active: ({ day }: EncodedSelection) => sql`exists (select from player_days d
      where d.environment_id = p.environment_id and d.day = ${day}::text::date and d.player_id = p.id)`
  }
  const matchOf = ({ environmentId, match }: EncodedSelection) => {
    switch (match.kind) {
      case "all":
        return []
      case "id":
        return [sql`p.id = ${match.id}`]
      // Includes emails that providers report: accounts are never merged by email.
      case "email":
        return [
          sql`p.id in (select player_id from identities
            where environment_id = ${environmentId} and lower(email) = any(${[...match.forms]}::text[]))`
        ]
      case "prefix":
        return [
          sql`lower(p.display_name) ~>=~ lower(${match.prefix}::text)`,
          sql`lower(p.display_name) ~<~ (lower(${match.prefix}::text) || ${lastCharacter}::text)`
        ]
    }
  }
  const selected = (selection: EncodedSelection) => [
    sql`p.environment_id = ${selection.environmentId}`,
    ...matchOf(selection),
    ...(selection.filter === null ? [] : [filters[selection.filter](selection)])
  ]
  const afterOf = ({ after, order }: EncodedPage) => {
    if (after === null) return []
    if (order === "newest") return [sql`p.id < ${after.id}`]
    if (order === "oldest") return [sql`p.id > ${after.id}`]
    return [
      sql`lower(p.display_name) ~>=~ ${after.name}::text`,
      sql`(lower(p.display_name) <> ${after.name}::text or p.id > ${after.id})`
    ]
  }
  return { afterOf, selected }
}

const statements = (sql: SqlClient.SqlClient) => {
  const { afterOf, selected } = conditions(sql)
  // Each follows an index, so the cost of a page without a filter does not depend on the number of players.
  const orders = {
    newest: sql`p.id desc`,
    oldest: sql`p.id`,
    name: sql`lower(p.display_name) using ~<~, p.id`
  }
  return {
    list: SqlSchema.findAll({
      Request: Page,
      Result: ListedRow,
      execute: (page) => sql`
        select ${seenColumns(sql)}, lower(p.display_name) as sort_name from players p
        where ${sql.and([...selected(page), ...afterOf(page)])}
        order by ${orders[page.order]} limit ${page.limit}`
    }),
    count: SqlSchema.findOne({
      Request: Selection,
      Result: Schema.Struct({ total: Schema.Int }),
      execute: (selection) => sql`
        select count(*)::int as total from players p where ${sql.and(selected(selection))}`
    })
  }
}

/** Repository of lists of players. */
export class PlayerListRepository extends Context.Service<PlayerListRepository>()(
  "sql/projects/player-list/PlayerListRepository",
  {
    make: Effect.map(SqlClient.SqlClient, (sql) => {
      const { count, list } = statements(sql)
      return {
        list: (page: typeof Page.Type) => orDieWithTimeout(list(page)),
        /** Returns the number of players that match, on all pages. */
        count: (selection: PlayerSelection) =>
          Effect.map(orDieWithTimeout(count(selection)), ({ total }) => total)
      }
    })
  }
) {
  static readonly layer = Layer.effect(PlayerListRepository, this.make)
}
