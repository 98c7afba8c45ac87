/** Links that confirm developers' addresses, as hashes. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const LinkRow = Schema.Struct({
  hash: Schema.String,
  developerId: DeveloperId,
  /** The address that the link was sent to. */
  email: Schema.String,
  expiresAt: Time
})

const Confirmation = Schema.Struct({
  developerId: DeveloperId,
  email: Schema.String,
  verifiedAt: Time
})

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: LinkRow,
    execute: (row) => sql`insert into developer_email_links ${sql.insert(row)}`
  }),
  take: SqlSchema.findOneOption({
    Request: Schema.Struct({ hash: Schema.String, now: Time }),
    Result: LinkRow,
    execute: ({ hash, now }) => sql`
      delete from developer_email_links where hash = ${hash} and expires_at > ${now} returning *`
  }),
  confirm: SqlSchema.findOneOption({
    Request: Confirmation,
    Result: Schema.Struct({ id: DeveloperId }),
    execute: ({ developerId, email, verifiedAt }) => sql`
      update developers set email_verified_at = coalesce(email_verified_at, ${verifiedAt})
      where id = ${developerId} and email = ${email} returning id`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from developer_email_links where expires_at <= ${now}`
  })
})

/** Repository of `developer_email_links` and of the confirmation in `developers`. */
export class DeveloperEmailRepository extends Context.Service<DeveloperEmailRepository>()(
  "sql/developers/emails/DeveloperEmailRepository",
  {
    make: Effect.gen(function* () {
      const { confirm, insert, sweep, take } = statements(yield* SqlClient.SqlClient)
      return {
        insert: (row: typeof LinkRow.Type) => orDieWithTimeout(insert(row)),
        /** Deletes and returns an unexpired link. One of several concurrent callers gets it. */
        take: (request: Parameters<typeof take>[0]) => orDieWithTimeout(take(request)),
        /**
         * Marks the address as confirmed. Returns false if the account has another address by now.
         */
        confirm: (request: typeof Confirmation.Type) =>
          Effect.map(orDieWithTimeout(confirm(request)), Option.isSome),
        sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
      }
    })
  }
) {
  static readonly layer = Layer.effect(DeveloperEmailRepository, this.make)
}
