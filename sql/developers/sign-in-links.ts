/** One-time links that sign in the developer of the demo project, by the hash of their code. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"

const Link = Schema.Struct({ hash: Schema.String, expiresAt: Schema.DateTimeUtcFromDate })

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: Link,
    execute: (row) => sql`insert into sign_in_links ${sql.insert(row)}`
  }),
  keepNewest: SqlSchema.void({
    Request: Schema.Int,
    execute: (maxLinks) => sql`
      delete from sign_in_links where hash in (
        select hash from sign_in_links order by expires_at desc, hash offset ${maxLinks})`
  }),
  take: SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Link,
    execute: (hash) => sql`delete from sign_in_links where hash = ${hash} returning *`
  })
})

/** Repository of `sign_in_links`. */
export class SignInLinkRepository extends Context.Service<SignInLinkRepository>()(
  "sql/developers/sign-in-links/SignInLinkRepository",
  {
    make: Effect.gen(function* () {
      const { insert, keepNewest, take } = statements(yield* SqlClient.SqlClient)
      return {
        /** Stores a link, and deletes all but the newest `maxLinks`. */
        insert: (link: typeof Link.Type, maxLinks: number) =>
          Effect.orDie(Effect.andThen(insert(link), keepNewest(maxLinks))),
        /** Deletes a link and returns its expiry. */
        take: (hash: string) =>
          Effect.map(
            Effect.orDie(take(hash)),
            Option.map(({ expiresAt }) => expiresAt)
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(SignInLinkRepository, this.make)
}
