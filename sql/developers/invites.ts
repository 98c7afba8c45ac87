/** Invite codes of the operator, as hashes, and their redemptions: one for each account. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId, InviteId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const NewCode = Schema.Struct({
  id: InviteId,
  codeHash: Schema.String,
  uses: Schema.Int,
  /** Note of the operator about the recipient of the code. */
  note: Schema.String,
  createdAt: Time
})

const CodeRow = Schema.Struct({
  id: InviteId,
  uses: Schema.Int,
  used: Schema.Int,
  note: Schema.String,
  createdAt: Time,
  revokedAt: Schema.NullOr(Time)
})
export type InviteCodeRow = typeof CodeRow.Type

const Redemption = Schema.Struct({ developerId: DeveloperId, codeId: InviteId, redeemedAt: Time })

const codes = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal("id, uses, used, note, created_at, revoked_at")
  return {
    insert: SqlSchema.void({
      Request: NewCode,
      execute: (row) => sql`insert into invite_codes ${sql.insert(row)}`
    }),
    find: SqlSchema.findOneOption({
      Request: Schema.String,
      Result: CodeRow,
      execute: (codeHash) => sql`select ${columns} from invite_codes where code_hash = ${codeHash}`
    }),
    list: SqlSchema.findAll({
      Request: Schema.Void,
      Result: CodeRow,
      execute: () => sql`select ${columns} from invite_codes order by id desc`
    }),
    take: SqlSchema.findOneOption({
      Request: Schema.String,
      Result: CodeRow,
      execute: (codeHash) => sql`
        update invite_codes set used = used + 1
        where code_hash = ${codeHash} and used < uses and revoked_at is null
        returning ${columns}`
    }),
    revoke: SqlSchema.findOneOption({
      Request: Schema.Struct({ id: Schema.String, revokedAt: Time }),
      Result: CodeRow,
      execute: ({ id, revokedAt }) => sql`
        update invite_codes set revoked_at = coalesce(revoked_at, ${revokedAt})
        where id = ${id} returning ${columns}`
    })
  }
}

const redemptions = (sql: SqlClient.SqlClient) => ({
  redeem: SqlSchema.findOneOption({
    Request: Redemption,
    Result: Schema.Struct({ developerId: DeveloperId }),
    execute: (row) => sql`
      insert into invite_redemptions ${sql.insert(row)}
      on conflict do nothing returning developer_id`
  }),
  hasRedeemed: SqlSchema.findOneOption({
    Request: DeveloperId,
    Result: Schema.Struct({ developerId: DeveloperId }),
    execute: (id) => sql`select developer_id from invite_redemptions where developer_id = ${id}`
  })
})

/** Repository of `invite_codes` and `invite_redemptions`. */
export class InviteRepository extends Context.Service<InviteRepository>()(
  "sql/developers/invites/InviteRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { find, insert, list, revoke, take } = codes(sql)
      const { hasRedeemed, redeem } = redemptions(sql)
      return {
        insert: (row: typeof NewCode.Type) => orDieWithTimeout(insert(row)),
        /** Finds a code by its hash, also a spent or revoked one. */
        find: (codeHash: string) => orDieWithTimeout(find(codeHash)),
        /** Lists all codes, newest first. */
        list: orDieWithTimeout(list(undefined)),
        /** Consumes one use of a code. Returns none if no use is left. The row stays locked. */
        take: (codeHash: string) => orDieWithTimeout(take(codeHash)),
        /** Revokes a code; none if there is no such code. */
        revoke: (request: Parameters<typeof revoke>[0]) => orDieWithTimeout(revoke(request)),
        /** Stores the redemption. Returns false if the account has redeemed a code before. */
        redeem: (row: typeof Redemption.Type) =>
          Effect.map(orDieWithTimeout(redeem(row)), Option.isSome),
        hasRedeemed: (id: DeveloperId) =>
          Effect.map(orDieWithTimeout(hasRedeemed(id)), Option.isSome)
      }
    })
  }
) {
  static readonly layer = Layer.effect(InviteRepository, this.make)
}
