/** Guests who cannot come back: their last refresh token has expired. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { sweepClaim } from "../sweep-claims.ts"

const Time = Schema.DateTimeUtcFromDate

const Page = Schema.Struct({
  /** Time by which every refresh token of the guest had expired. */
  expiredBefore: Time,
  /** The last player of the page before; empty for the first page. */
  after: Schema.String,
  limit: Schema.Int
})

const statements = (sql: SqlClient.SqlClient) => ({
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
      const sql = yield* SqlClient.SqlClient
      const { page } = statements(sql)
      return {
        /** The claim on the sweep. */
        ...sweepClaim(sql, "guests"),
        /** The next expired guests in the order of their ids. */
        page: (request: typeof Page.Type) => Effect.orDie(page(request))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ExpiredGuestRepository, this.make)
}
