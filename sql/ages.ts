/**
 * Age groups as players change them: each change is one statement that decides and writes, so of two
 * at once neither undoes what the other has made stricter (decisions 3.2.13).
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema, type Statement } from "effect/sql"
import { AgeBand, SignalledBand } from "#rpc/ages"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Owner = { environmentId: EnvironmentId, playerId: PlayerId }

/** What a player's age group is after a change. */
const Declared = Schema.Struct({ declaredAgeBand: Schema.NullOr(AgeBand) })

/** How loose a group is, from 1. */
const makeRank = (sql: SqlClient.SqlClient) => (band: Statement.Fragment) =>
  sql`array_position(${[...AgeBand.literals]}::text[], ${band})`

const statements = (sql: SqlClient.SqlClient) => {
  const rank = makeRank(sql)
  const of = (band: AgeBand) => rank(sql`${band}::text`)
  const declared = rank(sql`declared_age_band`)
  const signalled = rank(sql`signalled_age_band`)
  return {
    declare: SqlSchema.findOneOption({
      Request: Schema.Struct({ ...Owner, band: AgeBand }),
      Result: Declared,
      execute: ({ band, environmentId, playerId }) => sql`
        update players set declared_age_band = ${band}
        where environment_id = ${environmentId} and id = ${playerId}
          and ${of(band)} <= coalesce(${declared}, ${signalled}, ${of("adult")})
        returning declared_age_band`
    }),
    signal: SqlSchema.findOneOption({
      Request: Schema.Struct({ ...Owner, band: SignalledBand, undeclared: AgeBand }),
      Result: Declared,
      execute: ({ band, environmentId, playerId, undeclared }) => sql`
        update players set
          signalled_age_band = case when ${of(band)} >= ${signalled}
            then signalled_age_band else ${band} end,
          declared_age_band = case when ${of(band)} >= coalesce(${declared}, ${of(undeclared)})
            then declared_age_band else ${band} end
        where environment_id = ${environmentId} and id = ${playerId}
        returning declared_age_band`
    })
  }
}

/** Changes of `players.declared_age_band`. */
export class AgeRepository extends Context.Service<AgeRepository>()("sql/ages/AgeRows", {
  make: Effect.gen(function* () {
    const { declare, signal } = statements(yield* SqlClient.SqlClient)
    return {
      /** None when there is no such player, or it would loosen what is known. */
      declare: (request: Parameters<typeof declare>[0]) => orDieWithTimeout(declare(request)),
      /** Makes stricter, or leaves as it is; `undeclared` is what counts before a declaration. */
      signal: (request: Parameters<typeof signal>[0]) => orDieWithTimeout(signal(request))
    }
  })
}) {
  static readonly layer = Layer.effect(AgeRepository, this.make)
}
