/** Guests who cannot come back: their last refresh token has expired. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const Page = Schema.Struct({
  /** Every refresh token of the guest had expired by then. */
  expiredBefore: Time,
  /** The last player of the page before; empty for the first page. */
  after: Schema.String,
  limit: Schema.Int
})

const claimName = "guests"

const statements = (sql: SqlClient.SqlClient) => ({
  claim: SqlSchema.findOneOption({
    Request: Schema.Struct({ now: Time, until: Time }),
    Result: Schema.Struct({ name: Schema.String }),
    execute: ({ now, until }) => sql`
      insert into sweep_claims as c (name, claimed_until) values (${claimName}, ${until})
      on conflict (name) do update set claimed_until = excluded.claimed_until
        where c.claimed_until <= ${now}
      returning name`
  }),
  release: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`
      update sweep_claims set claimed_until = ${now} where name = ${claimName}`
  }),
  page: SqlSchema.findAll({
    Request: Page,
    Result: Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId }),
    execute: ({ after, expiredBefore, limit }) => sql`
      select p.environment_id, p.id as player_id from players p
      where p.id > ${after} and p.is_guest and p.created_at < ${expiredBefore}
        and not exists (
          select from sessions s where s.player_id = p.id and s.expires_at >= ${expiredBefore})
      order by p.id limit ${limit}`
  })
})

/** Finds expired guests, for one process at a time. */
export class ExpiredGuestRepository extends Context.Service<ExpiredGuestRepository>()(
  "sql/player-data/expired-guests/ExpiredGuestRepository",
  {
    make: Effect.gen(function* () {
      const { claim, page, release } = statements(yield* SqlClient.SqlClient)
      return {
        /** Claims the sweep until a time; false if another process has it. */
        claim: (request: Parameters<typeof claim>[0]) =>
          Effect.map(orDieWithTimeout(claim(request)), Option.isSome),
        release: (now: typeof Time.Type) => orDieWithTimeout(release(now)),
        /** The next expired guests in the order of their ids. */
        page: (request: typeof Page.Type) => Effect.orDie(page(request))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ExpiredGuestRepository, this.make)
}
