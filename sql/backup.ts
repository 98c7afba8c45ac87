/**
 * Reads and writes whole tables for a backup, over one session. A row travels as the text of its
 * composite type, which every Postgres since 14 writes and reads without loss.
 *
 * A backup excludes unlogged tables and those of the cluster: they hold live state.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Effect, Schema, Stream } from "effect"
import { causeOf } from "./database.ts"

export type Session = Pick<PgConnection.PgConnection, "query" | "stream">

/** A table, with its columns in the order of the row's text. */
export const TableShape = Schema.Struct({
  name: Schema.String,
  columns: Schema.Array(Schema.String)
})
export type TableShape = typeof TableShape.Type

/** Longest message of the server: it makes none that is longer. A row with bytes is twice their size. */
export const rowMaxBytes = 2 ** 30

/** The last value of a sequence. */
export const SequenceValue = Schema.Struct({ name: Schema.String, value: Schema.String })
export type SequenceValue = typeof SequenceValue.Type

const decodeTables = Schema.decodeUnknownEffect(Schema.Array(TableShape))
const decodeSequences = Schema.decodeUnknownEffect(Schema.Array(SequenceValue))

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const rowsOf = (session: Session, sql: string, parameters: ReadonlyArray<unknown> = []) =>
  Effect.map(session.query(sql, parameters, false), ({ rows }) => rows)

/** The table of migrations, which a restore writes by migrating. */
const migrationsTable = "migrations"

/**
 * Makes the schema of the service's tables the only one of the session. A role may have a schema of its own,
 * which comes first and has other tables.
 */
export const enterServiceSchema = (session: Session) =>
  rowsOf(
    session,
    `select set_config('search_path', quote_ident(n.nspname), false)
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1)`,
    [migrationsTable]
  )

/** Whether the role of the session may change the tables; also without tables. */
export const ownsTables = (session: Session) =>
  Effect.map(
    rowsOf(
      session,
      `select coalesce(
         (select pg_has_role(relowner, 'usage') from pg_class where oid = to_regclass($1)), true
       ) as owns`,
      [migrationsTable]
    ),
    ([row]) => row?.["owns"] === true
  )

const scratchPrefix = "svc_verify_"

const lockOf = "hashtextextended($1, 0)"

/** Drops the scratch schemas of processes that were killed: those hold no lock on its name any more. */
const dropAbandoned = Effect.fnUntraced(function* (session: Session) {
  const found = yield* rowsOf(
    session,
    "select nspname::text as name from pg_namespace where starts_with(nspname, $1)",
    [scratchPrefix]
  )
  for (const { name } of found) {
    const [row] = yield* rowsOf(session, `select pg_try_advisory_lock(${lockOf}) as free`, [name])
    if (row?.["free"] !== true) continue
    yield* rowsOf(session, `drop schema if exists ${quoted(String(name))} cascade`)
    yield* rowsOf(session, `select pg_advisory_unlock(${lockOf})`, [name])
  }
})

/** Name of a new scratch schema. */
export const scratchSchema = (id: string): string => `${scratchPrefix}${id.replaceAll("-", "")}`

/**
 * Runs work in a scratch schema, which it creates before and drops after. What cannot be dropped is dropped
 * by the next one.
 */
export const withScratchSchema = <A, E, R>(
  session: Session,
  name: string,
  work: Effect.Effect<A, E, R>
) =>
  Effect.acquireUseRelease(
    Effect.gen(function* () {
      yield* dropAbandoned(session)
      yield* rowsOf(session, `select pg_advisory_lock(${lockOf})`, [name])
      yield* rowsOf(session, `create schema ${quoted(name)}`)
    }),
    () => work,
    () =>
      Effect.catch(rowsOf(session, `drop schema if exists ${quoted(name)} cascade`), (error) =>
        Effect.logWarning(
          `Failed to drop the schema ${name}, which the next verification does: ${causeOf(error)}`
        )
      )
  )

/** The tables that a backup holds. */
export const listTables = (session: Session) =>
  Effect.flatMap(
    rowsOf(
      session,
      `select c.relname as name, array_to_json(array_agg(a.attname order by a.attnum)) as columns
       from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
         and c.relpersistence = 'p' and c.relname not like 'cluster\\_%' and c.relname <> $1
       group by c.relname order by c.relname`,
      [migrationsTable]
    ),
    decodeTables
  )

/**
 * Tables of a backup, by the migration that creates each. A backup that finds fewer tables has not found the
 * database of the service: it fails. A new migration with a table adds it here.
 */
const tablesOf: Readonly<Record<number, string>> = {
  1: "developers projects environments keys configs signing_keys",
  3: "players sessions",
  5: "channels",
  6: "saves save_counts",
  7: "stats stat_signals webhook_secrets",
  8: "idempotency_keys",
  9: "developer_sessions developer_identities invite_uses project_members player_days daily_actives",
  10: "sanctions deleted_players",
  11: "audit",
  12: "provider_credentials",
  13: "identities single_use_codes",
  14: "mails",
  15: "sign_in_steps",
  22: "setup_token",
  24: "sweep_claims",
  27: "share_links share_days share_salts share_visitors",
  29: "deployments deployment_files hosted_apps blobs",
  30: "ledger_transactions ledger_postings",
  31: "developer_flows",
  32: "hosted_domains",
  33: "invite_codes invite_redemptions developer_email_links",
  34: "checkouts payment_returns payment_reconciliation usage_counters usage_batches usage_periods",
  35: "functions function_deployments function_secrets function_crons function_deliveries function_logs function_usage",
  36: "function_data function_snapshots function_snapshot_objects",
  38: "function_hosts",
  39: "request_minutes",
  40: "sign_in_links",
  42: "share_addresses",
  43: "spent_answers",
  44: "closed_signups",
  46: "blocks"
}

/** The tables that a database at this migration has, in order of their names. */
export const tablesAt = (migration: number): ReadonlyArray<string> =>
  Object.entries(tablesOf)
    .filter(([id]) => Number(id) <= migration)
    .flatMap(([, names]) => names.split(" "))
    .toSorted()

/** The newest migration of the database; 0 without tables. */
export const appliedMigration = Effect.fnUntraced(function* (session: Session) {
  const [found] = yield* rowsOf(session, "select to_regclass($1) is not null as there", [
    migrationsTable
  ])
  if (found?.["there"] !== true) return 0
  const [row] = yield* rowsOf(
    session,
    `select coalesce(max(migration_id), 0)::int as id from ${migrationsTable}`
  )
  return Number(row?.["id"])
})

/** A sequence without a table. */
const epochs = "entity_epochs"

/** The sequences of the service that were used. */
export const listSequences = (session: Session) =>
  Effect.flatMap(
    rowsOf(
      session,
      `select sequencename as name, last_value::text as value
       from pg_sequences s
       where s.schemaname = current_schema() and last_value is not null
         and (sequencename = $1 or exists (
           select from unnest($2::text[]) own where starts_with(sequencename, own || '_')))
       order by 1`,
      [epochs, Object.values(tablesOf).flatMap((names) => names.split(" "))]
    ),
    decodeSequences
  )

/** A wait for a table that another session has locked ends after this long. */
const lockWait = "1min"

/**
 * Parameters of a transaction on rows. A database or a role may have others, under which the text of a row
 * loses digits, has dates in another order, or which end long statements.
 */
const parameters: Readonly<Record<string, string>> = {
  array_nulls: "on",
  bytea_output: "hex",
  datestyle: "ISO, MDY",
  extra_float_digits: "3",
  idle_in_transaction_session_timeout: "0",
  intervalstyle: "postgres",
  lock_timeout: lockWait,
  statement_timeout: "0",
  timezone: "UTC"
}

const begin = Effect.fnUntraced(function* (session: Session, mode: string) {
  yield* session.query(`begin ${mode}`, [], false)
  for (const [name, value] of Object.entries(parameters)) {
    yield* session.query("select set_config($1, $2, true)", [name, value], false)
  }
})

/** Starts a transaction in which every table is read as of the same moment. */
export const beginSnapshot = (session: Session) =>
  begin(session, "isolation level repeatable read read only")

/** Ends it. */
export const endSnapshot = (session: Session) => session.query("commit", [], false)

/** The rows of a table, each as the text of its composite type. */
export const readRows = (session: Session, { name }: TableShape) =>
  Stream.map(
    session.stream(`select t::text as row from ${quoted(name)} t`),
    ({ row }): string => `${row}`
  )

/** Whether the service has been used: it has a project or a developer. */
export const isUsed = (session: Session) =>
  Effect.map(
    rowsOf(
      session,
      "select exists (select from projects) or exists (select from developers) as used"
    ),
    ([row]) => row?.["used"] === true
  )

/** Lists other sessions on this database, which may be runners, by the names of their programs. */
export const otherSessions = (session: Session) =>
  Effect.map(
    rowsOf(
      session,
      `select distinct coalesce(nullif(application_name, ''), 'unnamed') as program
       from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()
         and backend_type = 'client backend' order by 1`
    ),
    (rows) => rows.map(({ program }) => String(program))
  )

/** Ids of the master keys that encrypted the signing keys, newest first; the oldest format names none. */
export const listMasterKeys = (session: Session) =>
  Effect.map(
    rowsOf(
      session,
      `select split_part(private_jwk_sealed, '.', 1) as id from signing_keys
       where private_jwk_sealed like '%.%.%' group by 1 order by max(created_at) desc`
    ),
    (rows) => rows.map(({ id }) => String(id))
  )

/** Keys of the stored files of apps, as the blob store names them. */
export const readBlobKeys = (session: Session) =>
  Stream.map(
    session.stream(
      "select environment_id || '/' || sha256 as key from blobs where stored_at is not null"
    ),
    ({ key }) => String(key)
  )

const decodeKeys = Schema.decodeUnknownEffect(
  Schema.Array(
    Schema.Struct({ table: Schema.String, name: Schema.String, definition: Schema.String })
  )
)

const foreignKeys = (session: Session) =>
  Effect.flatMap(
    rowsOf(
      session,
      `select conrelid::regclass::text as table, quote_ident(conname) as name,
         pg_get_constraintdef(oid) as definition
       from pg_constraint
       where contype = 'f' and connamespace = current_schema()::regnamespace and conparentid = 0`
    ),
    decodeKeys
  )

/** Writes rows: a JSON array of their texts. Returns how many. */
export const writeRows = (session: Session, { columns, name }: TableShape, rows: string) => {
  const names = columns.map(quoted)
  return Effect.map(
    session.query(
      `insert into ${quoted(name)} (${names.join(", ")}) overriding system value
       select ${names.map((column) => `(whole).${column}`).join(", ")}
       from (select text::${quoted(name)} as whole
             from json_array_elements_text($1::json) text offset 0) rows`,
      [rows]
    ),
    ({ rowCount }) => rowCount ?? 0
  )
}

const forEachTable = (
  session: Session,
  tables: ReadonlyArray<TableShape>,
  statement: (table: string) => string
) =>
  Effect.forEach(tables, ({ name }) => session.query(statement(quoted(name)), [], false), {
    discard: true
  })

/**
 * Replaces the content of the tables, in one transaction. `check` runs when all tables are locked. Triggers
 * are off meanwhile: they would refuse changes of append-only tables, and count twice. Postgres checks
 * foreign keys when all rows are there.
 */
export const replaceContent = <E, R>(
  session: Session,
  tables: ReadonlyArray<TableShape>,
  sequences: ReadonlyArray<SequenceValue>,
  {
    check,
    write
  }: { readonly check: Effect.Effect<void, E, R>; readonly write: Effect.Effect<void, E, R> }
) =>
  Effect.gen(function* () {
    yield* begin(session, "")
    const keys = yield* foreignKeys(session)
    for (const { name, table } of keys) {
      yield* session.query(`alter table ${table} drop constraint ${name}`, [], false)
    }
    yield* forEachTable(session, tables, (table) => `alter table ${table} disable trigger user`)
    yield* check
    yield* forEachTable(session, tables, (table) => `delete from ${table}`)
    yield* write
    for (const { name, value } of sequences) {
      const set = "select setval(quote_ident($1)::regclass, $2::bigint)"
      yield* session.query(set, [name, value])
    }
    yield* forEachTable(session, tables, (table) => `alter table ${table} enable trigger user`)
    for (const { definition, name, table } of keys) {
      yield* session.query(`alter table ${table} add constraint ${name} ${definition}`, [], false)
    }
    yield* session.query("commit", [], false)
    // The rows are there. Statistics that are missing follow by themselves.
    const names = tables.map(({ name }) => quoted(name)).join(", ")
    yield* Effect.ignore(session.query(`analyze ${names}`, [], false), { log: "Warn" })
  }).pipe(Effect.onError(() => Effect.ignore(session.query("rollback", [], false))))
