/**
 * The ledger of prepaid money. It only grows: balances are sums of its postings. Amounts are integer cents
 * and bigints on the way, never floating point.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId, LedgerEntryId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

/** Accounts of a developer, and those of the operator that the other side is posted to. */
export const LedgerAccount = Schema.Literals([
  "prepaid",
  "owed",
  "invite",
  "invite_pending",
  "provider",
  "revenue",
  "grants",
  "adjustments"
])
export type LedgerAccount = typeof LedgerAccount.Type

export const LedgerKind = Schema.Literals(["topup", "invite", "usage", "refund", "adjustment"])
export type LedgerKind = typeof LedgerKind.Type

const TransactionRow = Schema.Struct({
  id: Schema.String,
  developerId: DeveloperId,
  kind: LedgerKind,
  source: Schema.String,
  description: Schema.String,
  createdAt: Time
})

const PostingRow = Schema.Struct({
  id: Schema.String,
  transactionId: Schema.String,
  developerId: DeveloperId,
  account: LedgerAccount,
  amount: Schema.BigIntFromString,
  balanceAfter: Schema.BigIntFromString,
  createdAt: Time
})

const Sum = Schema.Struct({ account: LedgerAccount, sum: Schema.BigIntFromString })

/** A posting to an account of the developer, as the developer reads it. */
const EntryRow = Schema.Struct({
  id: LedgerEntryId,
  kind: LedgerKind,
  account: Schema.Literals(["prepaid", "owed", "invite"]),
  amount: Schema.BigIntFromString,
  balanceAfter: Schema.BigIntFromString,
  description: Schema.String,
  createdAt: Time
})
export type EntryRow = typeof EntryRow.Type

const writes = (sql: SqlClient.SqlClient) => ({
  lock: SqlSchema.findOneOption({
    Request: DeveloperId,
    Result: Schema.Struct({ id: DeveloperId }),
    execute: (id) => sql`select id from developers where id = ${id} for no key update`
  }),
  insertTransaction: SqlSchema.findAll({
    Request: TransactionRow,
    Result: Schema.Struct({ id: Schema.String }),
    execute: (row) => sql`
      insert into ledger_transactions ${sql.insert(row)}
      on conflict (source) do nothing returning id`
  }),
  insertPostings: SqlSchema.void({
    Request: Schema.NonEmptyArray(PostingRow),
    execute: (rows) => sql`insert into ledger_postings ${sql.insert(rows)}`
  })
})

const reads = (sql: SqlClient.SqlClient) => ({
  sums: SqlSchema.findAll({
    Request: DeveloperId,
    Result: Sum,
    execute: (id) => sql`
      select account, sum(amount)::text as sum from ledger_postings
      where developer_id = ${id} group by account`
  }),
  ownerOf: SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Schema.Struct({ developerId: DeveloperId }),
    execute: (source) => sql`select developer_id from ledger_transactions where source = ${source}`
  }),
  isPosted: SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ posted: Schema.Boolean }),
    execute: (source) => sql`
      select exists (select from ledger_transactions where source = ${source}) as posted`
  }),
  granted: SqlSchema.findOne({
    Request: DeveloperId,
    Result: Schema.Struct({ sum: Schema.BigIntFromString }),
    execute: (id) => sql`
      select coalesce(sum(amount), 0)::text as sum from ledger_postings
      where developer_id = ${id} and account = 'invite' and amount > 0`
  }),
  page: SqlSchema.findAll({
    Request: Schema.Struct({
      developerId: DeveloperId,
      after: Schema.NullOr(Schema.String),
      limit: Schema.Int
    }),
    Result: EntryRow,
    execute: ({ after, developerId, limit }) => sql`
      select p.id, t.kind, p.account, p.amount::text, p.balance_after::text, t.description,
        p.created_at
      from ledger_postings p join ledger_transactions t on t.id = p.transaction_id
      where p.developer_id = ${developerId} and p.account in ('prepaid', 'owed', 'invite')
        and (${after}::text is null or p.sequence < (
          select sequence from ledger_postings
          where id = ${after} and developer_id = ${developerId}))
      order by p.sequence desc limit ${limit}`
  }),
  owedSince: SqlSchema.findOneOption({
    Request: DeveloperId,
    Result: Schema.Struct({ since: Time }),
    // The first posting after which something was owed without a break until now.
    execute: (id) => sql`
      select p.created_at as since from ledger_postings p
      where p.developer_id = ${id} and p.account = 'owed' and p.balance_after < 0
        and p.sequence > coalesce((
          select max(sequence) from ledger_postings
          where developer_id = ${id} and account = 'owed' and balance_after = 0), 0)
      order by p.sequence limit 1`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { insertPostings, insertTransaction, lock } = writes(sql)
  const { granted, isPosted, owedSince, ownerOf, page, sums } = reads(sql)
  return {
    /** Locks the developer's ledger until the transaction ends; false if there is no such developer. */
    lock: (id: DeveloperId) => Effect.map(orDieWithTimeout(lock(id)), Option.isSome),
    /** Inserts a transaction; false if its event is posted already. */
    insertTransaction: (row: typeof TransactionRow.Type) =>
      Effect.map(orDieWithTimeout(insertTransaction(row)), (rows) => rows.length === 1),
    insertPostings: (rows: Parameters<typeof insertPostings>[0]) =>
      orDieWithTimeout(insertPostings(rows)),
    /** The sum of each account of a developer that has postings. */
    sums: (id: DeveloperId) => orDieWithTimeout(sums(id)),
    /** The developer of the event of a source; none if it is not posted. */
    ownerOf: (source: string) =>
      Effect.map(
        orDieWithTimeout(ownerOf(source)),
        Option.map(({ developerId }) => developerId)
      ),
    /** Whether the ledger has the event of a source. */
    isPosted: (source: string) =>
      Effect.map(orDieWithTimeout(isPosted(source)), ({ posted }) => posted),
    /** Returns the sum of all invite credit granted to a developer. */
    granted: (id: DeveloperId) => Effect.map(orDieWithTimeout(granted(id)), ({ sum }) => sum),
    /** Entries of a developer's accounts, newest first, after an entry of the page before. */
    page: (request: Parameters<typeof page>[0]) => orDieWithTimeout(page(request)),
    /** Returns the start of the current debt of a developer; none if nothing is owed. */
    owedSince: (id: DeveloperId) =>
      Effect.map(
        orDieWithTimeout(owedSince(id)),
        Option.map(({ since }) => since)
      )
  }
})

/** Repository of `ledger_transactions` and `ledger_postings`. */
export class LedgerRepository extends Context.Service<LedgerRepository>()(
  "sql/money/ledger/LedgerRepository",
  { make }
) {
  static readonly layer = Layer.effect(LedgerRepository, this.make)
}
