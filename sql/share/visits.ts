/**
 * Counts of visits, new players and plays by link and UTC day. Within a day, a hash of the visitor
 * under the day's random salt shows whether it was counted. The service deletes salts and hashes
 * when no request can need them. The counts stay and name nobody.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { ShareKind } from "#rpc/share/api"
import { share } from "#rpc/share/limits"
import { orDieWithTimeout } from "../database.ts"

/** One report of a visitor. */
const Visit = Schema.Struct({
  environmentId: EnvironmentId,
  linkId: Schema.String,
  /** The current UTC day, as an ISO date. */
  day: Schema.String,
  event: Schema.Literals(["landed", "played"]),
  visitor: Schema.Uint8Array,
  /** Hash of the address, of which a bounded number of visitors counts. */
  address: Schema.Uint8Array,
  /**
   * Arrival of a new account: the day of its creation, and the visitor's hash under the salt of
   * that day.
   */
  arrival: Schema.NullOr(Schema.Struct({ day: Schema.String, visitor: Schema.Uint8Array }))
})
export type Visit = typeof Visit.Type

const Range = Schema.Struct({
  environmentId: EnvironmentId,
  from: Schema.String,
  to: Schema.String,
  linkId: Schema.NullOr(Schema.String)
})

const Counts = {
  visits: Schema.NumberFromString,
  newPlayers: Schema.NumberFromString,
  plays: Schema.NumberFromString
}

const counting = (sql: SqlClient.SqlClient) => ({
  salt: SqlSchema.findOne({
    Request: Schema.Struct({ day: Schema.String, salt: Schema.Uint8Array }),
    Result: Schema.Struct({ salt: Schema.Uint8Array }),
    // The update of nothing returns the row that another node has inserted.
    execute: ({ day, salt }) => sql`
      insert into share_salts (day, salt) values (${day}::date, ${salt})
      on conflict (day) do update set salt = share_salts.salt returning salt`
  }),
  count: SqlSchema.findOne({
    Request: Visit,
    Result: Schema.Struct({ counted: Schema.Boolean }),
    // An arrival counts once for all links, so its row names none. A visitor beyond the bound of its
    // address leaves no row: anybody can make up browsers and guests.
    execute: ({ address, arrival, day, environmentId, event, linkId, visitor }) => sql`
      with seen as (
        insert into share_visitors (environment_id, day, link_id, event, visitor)
        select ${environmentId}, ${day}::date, ${linkId}, ${event}, ${visitor}
        where coalesce((
          select visitors from share_addresses where environment_id = ${environmentId}
            and day = ${day}::date and link_id = ${linkId} and event = ${event}
            and address = ${address}), 0) < ${share.visitorsPerAddress}
        on conflict do nothing returning 1
      ), numbered as (
        insert into share_addresses as a (environment_id, day, link_id, event, address, visitors)
        select ${environmentId}, ${day}::date, ${linkId}, ${event}, ${address}, 1 from seen
        on conflict (environment_id, day, link_id, event, address) do update
          set visitors = a.visitors + 1
        returning visitors
      ), admitted as (
        select from numbered where visitors <= ${share.visitorsPerAddress}
      ), arrived as (
        insert into share_visitors (environment_id, day, link_id, event, visitor)
        select ${environmentId}, ${arrival?.day ?? day}::date, '', 'arrived',
          ${arrival?.visitor ?? visitor}
        from admitted where ${arrival !== null}
        on conflict do nothing returning 1
      ), counts as (
        select (select count(*) from admitted) as seen, (select count(*) from arrived) as arrived
      ), written as (
        insert into share_days as d (environment_id, day, link_id, visits, new_players, plays)
        select ${environmentId}, ${day}::date, ${linkId},
          case when ${event} = 'landed' then seen else 0 end, arrived,
          case when ${event} = 'played' then seen else 0 end
        from counts where seen + arrived > 0
        on conflict (environment_id, day, link_id) do update set
          visits = d.visits + excluded.visits, new_players = d.new_players + excluded.new_players,
          plays = d.plays + excluded.plays
      )
      select seen > 0 as counted from counts`
  }),
  sweepVisitors: SqlSchema.void({
    Request: Schema.String,
    execute: (before) => sql`delete from share_visitors where day < ${before}::date`
  }),
  sweepAddresses: SqlSchema.void({
    Request: Schema.String,
    execute: (before) => sql`delete from share_addresses where day < ${before}::date`
  }),
  sweepSalts: SqlSchema.void({
    Request: Schema.String,
    execute: (before) => sql`delete from share_salts where day < ${before}::date`
  })
})

const reading = (sql: SqlClient.SqlClient) => ({
  days: SqlSchema.findAll({
    Request: Range,
    Result: Schema.Struct({ date: Schema.String, ...Counts }),
    execute: ({ environmentId, from, linkId, to }) => sql`
      select day::text as date, sum(visits)::text as visits,
        sum(new_players)::text as new_players, sum(plays)::text as plays
      from share_days
      where environment_id = ${environmentId} and day between ${from}::date and ${to}::date
        and (${linkId}::text is null or link_id = ${linkId})
      group by day order by day`
  }),
  links: SqlSchema.findAll({
    Request: Schema.Struct({ ...Range.fields, limit: Schema.Int }),
    Result: Schema.Struct({
      id: Schema.String,
      label: Schema.NullOr(Schema.String),
      kind: ShareKind,
      ...Counts
    }),
    execute: ({ environmentId, from, limit, linkId, to }) => sql`
      select l.id, l.label, l.kind, d.visits::text, d.new_players::text, d.plays::text
      from (
        select link_id, sum(visits) as visits, sum(new_players) as new_players,
          sum(plays) as plays
        from share_days
        where environment_id = ${environmentId} and day between ${from}::date and ${to}::date
          and (${linkId}::text is null or link_id = ${linkId})
        group by link_id
      ) d join share_links l on l.id = d.link_id and l.environment_id = ${environmentId}
      order by d.visits desc, d.plays desc, l.id limit ${limit}`
  })
})

/** Repository of `share_days`, and of the visitors that were counted. */
export class ShareVisitRepository extends Context.Service<ShareVisitRepository>()(
  "sql/share/visits/ShareVisitRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { count, salt, sweepAddresses, sweepSalts, sweepVisitors } = counting(sql)
      const { days, links } = reading(sql)
      return {
        /** The salt of a day; the given one becomes it if there is none yet. */
        salt: (day: string, fresh: Uint8Array) =>
          Effect.map(orDieWithTimeout(salt({ day, salt: fresh })), (row) => row.salt),
        /** Counts a visit; false if the visitor was counted before. */
        count: (visit: Visit) =>
          Effect.map(orDieWithTimeout(count(visit)), ({ counted }) => counted),
        /** Sums by day; days without visits are absent. */
        days: (range: typeof Range.Type) => orDieWithTimeout(days(range)),
        /** Sums by link, of links that still exist; the most visited first. */
        links: (range: Parameters<typeof links>[0]) => orDieWithTimeout(links(range)),
        /** Deletes the salts and hashes of days before this one. */
        sweep: (before: string) =>
          Effect.forEach(
            [sweepVisitors, sweepAddresses, sweepSalts],
            (sweep) => orDieWithTimeout(sweep(before)),
            { discard: true }
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(ShareVisitRepository, this.make)
}
