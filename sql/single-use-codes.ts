/** Single-use codes, each for one purpose. The database stores only their hashes. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

/** Purpose of a code. */
export const CodePurpose = Schema.Literals(["verify", "reset", "disown", "transfer"])
export type CodePurpose = typeof CodePurpose.Type

const CodeRow = Schema.Struct({
  hash: Schema.String,
  environmentId: EnvironmentId,
  playerId: PlayerId,
  purpose: CodePurpose,
  data: Schema.String,
  expiresAt: Time
})

const Presented = Schema.Struct({
  hash: Schema.String,
  environmentId: EnvironmentId,
  purpose: CodePurpose,
  now: Time
})

const Found = Schema.Struct({ playerId: PlayerId, data: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: CodeRow,
    execute: (row) => sql`insert into single_use_codes ${sql.insert(row)}`
  }),
  spend: SqlSchema.findOneOption({
    Request: Presented,
    Result: Found,
    execute: ({ environmentId, hash, now, purpose }) => sql`
      delete from single_use_codes
      where hash = ${hash} and environment_id = ${environmentId} and purpose = ${purpose}
        and expires_at > ${now}
      returning player_id, data`
  }),
  peek: SqlSchema.findOneOption({
    Request: Presented,
    Result: Found,
    execute: ({ environmentId, hash, now, purpose }) => sql`
      select player_id, data from single_use_codes
      where hash = ${hash} and environment_id = ${environmentId} and purpose = ${purpose}
        and expires_at > ${now}`
  }),
  revoke: SqlSchema.void({
    Request: Schema.Struct({
      environmentId: EnvironmentId,
      playerId: PlayerId,
      purpose: CodePurpose
    }),
    execute: ({ environmentId, playerId, purpose }) => sql`
      delete from single_use_codes where environment_id = ${environmentId}
        and player_id = ${playerId} and purpose = ${purpose}`
  }),
  revokeAll: SqlSchema.void({
    Request: Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId }),
    execute: ({ environmentId, playerId }) => sql`
      delete from single_use_codes
      where environment_id = ${environmentId} and player_id = ${playerId}`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from single_use_codes where expires_at <= ${now}`
  })
})

/** Repository of the table `single_use_codes`. */
export class CodeRepository extends Context.Service<CodeRepository>()(
  "sql/single-use-codes/CodeRows",
  {
    make: Effect.gen(function* () {
      const { insert, peek, spend, sweep, revoke, revokeAll } = statements(
        yield* SqlClient.SqlClient
      )
      return {
        insert: (row: typeof CodeRow.Type) => orDieWithTimeout(insert(row)),
        /** Deletes the code and returns its player and data; of concurrent callers only one gets them. */
        spend: (presented: typeof Presented.Type) => orDieWithTimeout(spend(presented)),
        /** The same without deleting the code. */
        peek: (presented: typeof Presented.Type) => orDieWithTimeout(peek(presented)),
        /** Deletes a player's codes of a purpose. */
        revoke: (request: Parameters<typeof revoke>[0]) => orDieWithTimeout(revoke(request)),
        /** Deletes a player's codes of all purposes. */
        revokeAll: (request: Parameters<typeof revokeAll>[0]) =>
          orDieWithTimeout(revokeAll(request)),
        sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
      }
    })
  }
) {
  static readonly layer = Layer.effect(CodeRepository, this.make)
}
