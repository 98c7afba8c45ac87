/** Claims on work that one process does at a time, such as the sweep of expired guests. */
import { Effect, Option, Schema } from "effect"
import { type SqlClient, SqlSchema } from "effect/sql"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

/** The claim of this name, which ends at a time or with its release. */
export const sweepClaim = (sql: SqlClient.SqlClient, name: string) => {
  const claim = SqlSchema.findOneOption({
    Request: Schema.Struct({ now: Time, until: Time }),
    Result: Schema.Struct({ name: Schema.String }),
    execute: ({ now, until }) => sql`
      insert into sweep_claims as c (name, claimed_until) values (${name}, ${until})
      on conflict (name) do update set claimed_until = excluded.claimed_until
        where c.claimed_until <= ${now}
      returning name`
  })
  const release = SqlSchema.void({
    Request: Time,
    execute: (now) => sql`update sweep_claims set claimed_until = ${now} where name = ${name}`
  })
  return {
    /** Claims the work until a time; false if another process has it. */
    claim: (request: { readonly now: Time; readonly until: Time }): Effect.Effect<boolean> =>
      Effect.map(orDieWithTimeout(claim(request)), Option.isSome),
    /** Releases the claim before it expires. */
    release: (now: Time): Effect.Effect<void> => orDieWithTimeout(release(now))
  }
}
