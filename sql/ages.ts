/**
 * Changes of age bands. Each change is one conditional update, so concurrent changes never replace a
 * stricter band by a looser one.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema, type Statement } from "effect/sql"
import { AgeBand, SignalledBand } from "#rpc/ages"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Owner = { environmentId: EnvironmentId, playerId: PlayerId }

/** The declared age band after a change. */
const Declared = Schema.Struct({ declaredAgeBand: Schema.NullOr(AgeBand) })

/** Rank of a band: 1 is the strictest. */
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
    signalled: SqlSchema.findOneOption({
      Request: Schema.Struct(Owner),
      Result: Schema.Struct({ band: Schema.NullOr(SignalledBand) }),
      execute: ({ environmentId, playerId }) => sql`
        select signalled_age_band as band from players
        where environment_id = ${environmentId} and id = ${playerId}`
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

/** Stores age declarations and age signals of players. */
export class AgeRepository extends Context.Service<AgeRepository>()("sql/ages/AgeRepository", {
  make: Effect.gen(function* () {
    const { declare, signal, signalled } = statements(yield* SqlClient.SqlClient)
    return {
      /**
       * Stores the band. Returns none if the player does not exist or the band is looser than a
       * known one.
       */
      declare: (request: Parameters<typeof declare>[0]) => orDieWithTimeout(declare(request)),
      /** Applies a signal if it is stricter. `undeclared` is the band in force before a declaration. */
      signal: (request: Parameters<typeof signal>[0]) => orDieWithTimeout(signal(request)),
      /** The strictest band that a platform has reported; null if none has. */
      signalled: (owner: Parameters<typeof signalled>[0]) =>
        Effect.map(
          orDieWithTimeout(signalled(owner)),
          Option.match({ onNone: () => null, onSome: ({ band }) => band })
        )
    }
  })
}) {
  static readonly layer = Layer.effect(AgeRepository, this.make)
}
