/**
 * Rows of channels: options and lists. Only the newest activation of a channel writes its row, so a
 * runner that lost the channel without noticing cannot overwrite its successor. It numbers its
 * writes: one that reaches Postgres after its time limit does not replace a later one.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isEnvironmentGone, orDieWithTimeout } from "./database.ts"

const Key = Schema.Struct({ environmentId: Schema.String, name: Schema.String })

/** A row of `channels`; `document` is a JSON text, times are ISO 8601. */
export const ChannelRow = Schema.Struct({
  ...Key.fields,
  epoch: Schema.Number,
  /** Number of the write, counted by the process that writes. */
  writeNumber: Schema.Number,
  /** The process that wrote the row. */
  node: Schema.String,
  /** Managed by the server API: it exists until it is deleted. */
  managed: Schema.Boolean,
  /** Time at which the row of an unmanaged channel becomes overdue. */
  dueAt: Schema.NullOr(Schema.String),
  document: Schema.String
})
export type ChannelRow = typeof ChannelRow.Type

/** The part of a row that an activation starts from. */
const StoredRow = Schema.Struct({ managed: Schema.Boolean, document: Schema.String })
export type StoredRow = typeof StoredRow.Type

const Claimed = Schema.Struct({
  epoch: Schema.Number,
  managed: Schema.NullOr(Schema.Boolean),
  document: Schema.NullOr(Schema.String)
})

const NameRow = Schema.Struct({ name: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  claim: SqlSchema.findOne({
    Request: Key,
    Result: Claimed,
    execute: ({ environmentId, name }) => sql`
      with activation as materialized (select nextval('entity_epochs') as epoch),
      claimed as (
        update channels set epoch = activation.epoch, write_number = 0 from activation
        where environment_id = ${environmentId} and name = ${name}
        returning managed, document
      )
      select activation.epoch::float8 as epoch, claimed.managed, claimed.document
      from activation left join claimed on true`
  }),
  insert: SqlSchema.findAll({
    Request: ChannelRow,
    Result: NameRow,
    execute: (row) => sql`
      insert into channels ${sql.insert(row)} on conflict do nothing returning name`
  }),
  save: SqlSchema.findAll({
    Request: ChannelRow,
    Result: NameRow,
    execute: (row) => sql`
      insert into channels as stored ${sql.insert(row)}
      on conflict (environment_id, name) do update set epoch = excluded.epoch,
        node = excluded.node, managed = excluded.managed, due_at = excluded.due_at,
        document = excluded.document, write_number = excluded.write_number
      where (stored.epoch, stored.write_number) <= (excluded.epoch, excluded.write_number)
      returning name`
  }),
  find: SqlSchema.findAll({
    Request: Key,
    Result: NameRow,
    execute: ({ environmentId, name }) => sql`
      select name from channels where environment_id = ${environmentId} and name = ${name}`
  }),
  withPlayer: SqlSchema.findAll({
    Request: Schema.Struct({ environmentId: Schema.String, playerId: Schema.String }),
    Result: NameRow,
    execute: ({ environmentId, playerId }) => sql`
      select name from channels
      where environment_id = ${environmentId} and position(${playerId} in document) > 0
      order by name`
  }),
  overdue: SqlSchema.findAll({
    Request: Schema.Struct({ before: Schema.String, limit: Schema.Int, skipped: Schema.Int }),
    Result: Key,
    execute: ({ before, limit, skipped }) => sql`
      select environment_id, name from channels where due_at < ${before}::text::timestamptz
      order by due_at limit ${limit} offset ${skipped}`
  })
})

/** Repository of channels. */
export class ChannelRepository extends Context.Service<ChannelRepository>()(
  "sql/channels/ChannelRows",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { claim, find, insert, overdue, save, withPlayer } = statements(sql)
      const wrote = <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
        orDieWithTimeout(
          Effect.catchIf(statement, isEnvironmentGone, () => Effect.succeed([]))
        ).pipe(Effect.map((rows) => rows.length === 1))
      return {
        /**
         * Assigns the next epoch to a channel. Returns it, and the stored part if there is a row.
         */
        claim: (environmentId: string, name: string) =>
          Effect.map(
            orDieWithTimeout(claim({ environmentId, name })),
            ({ document, epoch, managed }) => ({
              epoch,
              stored: document === null || managed === null ? undefined : { document, managed }
            })
          ),
        /** Inserts a row; false if the name is taken or the environment is deleted. */
        insert: (row: ChannelRow) => wrote(insert(row)),
        /** Writes a row; false if a newer activation owns it or the environment is deleted. */
        save: (row: ChannelRow) => wrote(save(row)),
        /** Removes the row of a closed channel, unless a newer activation owns it. */
        remove: (environmentId: string, name: string, epoch: number) =>
          orDieWithTimeout(
            Effect.asVoid(sql`
            delete from channels where environment_id = ${environmentId} and name = ${name}
              and epoch <= ${epoch}::float8`)
          ),
        /** Whether a channel of this name exists. */
        exists: (environmentId: string, name: string) =>
          Effect.map(orDieWithTimeout(find({ environmentId, name })), (rows) => rows.length > 0),
        /** The names of the channels whose document contains the player id, as owner or on a list. */
        withPlayer: (environmentId: string, playerId: string) =>
          Effect.map(orDieWithTimeout(withPlayer({ environmentId, playerId })), (rows) =>
            rows.map(({ name }) => name)
          ),
        /** Unmanaged channels that no activation has written in time. Skips the first ones. */
        overdue: (before: string, limit: number, skipped: number) =>
          orDieWithTimeout(overdue({ before, limit, skipped }))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ChannelRepository, this.make)
}
