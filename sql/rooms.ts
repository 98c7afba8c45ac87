/**
 * Rows of active rooms, written behind (at most a second after a change) to an unlogged table. A row is
 * the snapshot from which another node activates the room. `GET /v1/rooms`, join by code and matchmaking
 * read the rows as a list.
 *
 * Each activation of a room takes a greater epoch, and only the newest may write the row. So a runner
 * that lost the room without noticing cannot overwrite its successor. Its writes are numbered: one that
 * reaches Postgres after its time limit does not replace a later one. A crash of Postgres empties the
 * table. A missing row is written only if it existed before the table began again; at any other time it
 * was removed because the room closed.
 */
import { Context, DateTime, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { failOnTimeout, isRefused, orDieWithTimeout } from "./database.ts"
import { batchWrites } from "./batching.ts"
import { IdRow, idsOf, makeFinds } from "./live/found-rooms.ts"
import { insertEvents, isoTime } from "./functions/events.ts"

/** A row of `rooms`; `snapshot` and `metadata` are JSON texts, times ISO 8601. */
export const RoomRow = Schema.Struct({
  id: Schema.String,
  environmentId: Schema.String,
  epoch: Schema.Number,
  /** The process that wrote the row. */
  node: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  listed: Schema.Boolean,
  matched: Schema.Boolean,
  maxPlayers: Schema.Int,
  metadata: Schema.String,
  createdAt: Schema.String,
  /** Time of the room's next deadline. */
  dueAt: Schema.String,
  members: Schema.Array(Schema.String),
  hostId: Schema.NullOr(Schema.String),
  snapshot: Schema.String
})
export type RoomRow = typeof RoomRow.Type

/** A row to write; it existed after the epoch `since`. `writeNumber` is counted by the process. */
const Snapshot = Schema.Struct({
  ...RoomRow.fields,
  since: Schema.Number,
  writeNumber: Schema.Number
})
export type Snapshot = typeof Snapshot.Type

const EpochRow = Schema.Struct({ epoch: Schema.Number })

const OpenRow = Schema.Struct({ id: Schema.String, free: Schema.Int })

const Claim = Schema.Struct({
  id: Schema.String,
  epoch: Schema.Number,
  snapshot: Schema.NullOr(Schema.String),
  /** The first epoch since a crash emptied the table; null if nothing has been written since. */
  tableEpoch: Schema.NullOr(Schema.Number)
})

const InMode = Schema.Struct({
  environmentId: Schema.String,
  mode: Schema.NullOr(Schema.String),
  limit: Schema.Int
})

const columns = (sql: SqlClient.SqlClient) =>
  sql.literal(`id text, "environmentId" text, epoch bigint, node text, code text, mode text, listed boolean,
    matched boolean, "maxPlayers" int, metadata text, "createdAt" timestamptz,
    "dueAt" timestamptz, members text[], "hostId" text, snapshot text, since bigint,
    "writeNumber" bigint`)

/** Epochs to skip after a crash; greater than the number that a replica can lag behind. */
const skippedEpochs = 10_000

/** The statements that write rows; a batch is one JSON parameter, so the text never varies. */
const writes = (sql: SqlClient.SqlClient) => {
  const rows = (json: string) => sql`
    select r.id, r."environmentId", r.epoch, r.node, r.code, r.mode, r.listed, r.matched,
      cardinality(r.members), r."maxPlayers", r.metadata, r."createdAt", r."dueAt", r.members,
      r."hostId", r.snapshot, coalesce(r."writeNumber", 0)
    from jsonb_to_recordset(${json}::text::jsonb) as r(${columns(sql)})`
  const into =
    sql.literal(`insert into rooms as stored (id, environment_id, epoch, node, code, mode,
    listed, matched, players, max_players, metadata, created_at, due_at, members, host_id, snapshot,
    write_number)`)
  return {
    claim: SqlSchema.findNonEmpty({
      Request: Schema.Array(Schema.String),
      Result: Claim,
      // Locked in the order of their ids, in which snapshots are written.
      execute: (ids) => sql`
        with activation as materialized (
          select id, nextval('entity_epochs') as epoch from unnest(${[...ids]}::text[]) as id
        ),
        locked as materialized (
          select id from rooms where id = any(${[...ids]}::text[]) order by id for update
        ),
        claimed as (
          update rooms set epoch = activation.epoch, write_number = 0 from activation, locked
          where rooms.id = locked.id and activation.id = locked.id
          returning rooms.id, rooms.snapshot
        )
        select activation.id, activation.epoch::float8 as epoch, claimed.snapshot,
          (select epoch::float8 from rooms_begun) as table_epoch
        from activation left join claimed on claimed.id = activation.id`
    }),
    epoch: SqlSchema.findOne({
      Request: Schema.Void,
      Result: EpochRow,
      execute: () => sql`select nextval('entity_epochs')::float8 as epoch`
    }),
    insert: SqlSchema.findAll({
      Request: Schema.Array(RoomRow),
      Result: IdRow,
      execute: (batch) =>
        sql`${into} ${rows(JSON.stringify(batch))} order by r.id
          on conflict do nothing returning id`
    }),
    save: SqlSchema.findAll({
      Request: Schema.Array(Snapshot),
      Result: Schema.Struct({ id: Schema.String, tableEpoch: Schema.Number }),
      // A statement that finds no table epoch, while another one inserts it, follows the same crash.
      // A promoted replica may not know the last epochs that were issued, so the next one is far higher.
      execute: (batch) => sql`
        with inserted as materialized (
          insert into rooms_begun (epoch)
          select max(nextval('entity_epochs')) from generate_series(1, ${skippedEpochs})
          where not exists (select from rooms_begun) having count(*) > 0
          on conflict do nothing returning epoch
        ),
        current as materialized (
          select coalesce((select epoch from inserted), (select epoch from rooms_begun)) as epoch
        )
        ${into} ${rows(JSON.stringify(batch))}, current
        where (select true from rooms where rooms.id = r.id)
          or r.since < current.epoch or current.epoch is null
        order by r.id
        on conflict (id) do update set epoch = excluded.epoch, node = excluded.node, listed = excluded.listed,
          players = excluded.players, due_at = excluded.due_at, members = excluded.members, host_id = excluded.host_id,
          snapshot = excluded.snapshot, write_number = excluded.write_number
        where (stored.epoch, stored.write_number) <= (excluded.epoch, excluded.write_number)
        returning id, (select coalesce(epoch, 0)::float8 from current) as table_epoch`
    })
  }
}

const reads = (sql: SqlClient.SqlClient) => ({
  unclaimed: SqlSchema.findAll({
    Request: Schema.Array(Schema.Struct({ id: Schema.String, epoch: Schema.Number })),
    Result: Schema.Struct({ id: Schema.String, written: Schema.Boolean }),
    execute: (left) => sql`
      select own.id, coalesce(rooms.epoch = own.epoch, false) as written
      from unnest(${left.map(({ id }) => id)}::text[],
        ${left.map(({ epoch }) => epoch)}::float8[]) as own(id, epoch)
      left join rooms on rooms.id = own.id
      where rooms.id is null or rooms.epoch <= own.epoch`
  }),
  seats: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      playerIds: Schema.Array(Schema.String)
    }),
    Result: Schema.Struct({ id: Schema.String, members: Schema.Array(Schema.String) }),
    execute: ({ environmentId, playerIds }) => sql`
      select id, members from rooms
      where environment_id = ${environmentId} and members && ${[...playerIds]}::text[]
      order by created_at`
  }),
  open: SqlSchema.findAll({
    Request: InMode,
    Result: OpenRow,
    execute: ({ environmentId, limit, mode }) => sql`
      select id, max_players - players as free from rooms
      where environment_id = ${environmentId} and listed and matched and mode = ${mode}
      order by created_at limit ${limit}`
  }),
  ofPlayer: SqlSchema.findAll({
    Request: Schema.Struct({ environmentId: Schema.String, playerId: Schema.String }),
    Result: IdRow,
    execute: ({ environmentId, playerId }) => sql`
      select id from rooms
      where environment_id = ${environmentId} and members @> ${[playerId]}::text[] order by id`
  }),
  overdue: SqlSchema.findAll({
    Request: Schema.Struct({ before: Schema.String, limit: Schema.Int, skipped: Schema.Int }),
    Result: IdRow,
    execute: ({ before, limit, skipped }) => sql`
      select id from rooms where due_at < ${before}::text::timestamptz
      order by due_at limit ${limit} offset ${skipped}`
  })
})

/** Removes closed rooms, with their events. */
const removal = (sql: SqlClient.SqlClient) =>
  SqlSchema.void({
    Request: Schema.Struct({
      over: Schema.Array(Schema.Struct({ id: Schema.String, epoch: Schema.Number })),
      now: Schema.DateTimeUtcFromDate
    }),
    execute: ({ now, over }) => sql`
      with closed as (
        delete from rooms using unnest(${over.map(({ id }) => id)}::text[],
          ${over.map(({ epoch }) => epoch)}::float8[]) as over(id, epoch)
        where rooms.id = over.id and rooms.epoch <= over.epoch
        returning rooms.id, rooms.environment_id, rooms.mode, rooms.created_at)
      ${insertEvents(
        sql,
        "onRoomClosed",
        sql`
          select environment_id, json_build_object('room', json_build_object('id', id,
            'mode', mode, 'createdAt', ${isoTime(sql, "created_at")})), ${now}::timestamptz
          from closed`
      )}`
  })

/** Batches concurrent claims, and concurrent inserts, into one statement each. */
const batchedStatements = Effect.fnUntraced(function* ({
  claim,
  insert
}: ReturnType<typeof writes>) {
  const claimed = (ids: ReadonlyArray<string>) =>
    Effect.map(orDieWithTimeout(claim(ids)), (rows) => new Map(rows.map((row) => [row.id, row])))
  const claims = yield* batchWrites<string, typeof Claim.Type>({
    ownerOf: (id) => id,
    sizeOf: (id) => id.length,
    single: (id) => Effect.map(orDieWithTimeout(claim([id])), ([row]) => row),
    batch: claimed
  })
  const inserts = yield* batchWrites<RoomRow, boolean>({
    ownerOf: ({ id }) => id,
    sizeOf: ({ snapshot }) => snapshot.length,
    single: (row) => Effect.map(orDieWithTimeout(insert([row])), (ids) => ids.length === 1),
    batch: (requests) =>
      orDieWithTimeout(
        insert(requests).pipe(
          Effect.map((rows) => {
            const inserted = new Set(rows.map(({ id }) => id))
            return new Map(requests.map(({ id }) => [id, inserted.has(id)]))
          }),
          Effect.catchIf(isRefused, () => Effect.succeed("refused" as const))
        )
      )
  })
  return { claims, inserts }
})

/** Repository of rooms. */
export class RoomRepository extends Context.Service<RoomRepository>()("sql/rooms/RoomRepository", {
  make: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const statements = writes(sql)
    const { epoch, save } = statements
    const remove = removal(sql)
    const { ofPlayer, open, overdue, seats, unclaimed } = reads(sql)
    const { claims, inserts } = yield* batchedStatements(statements)
    return {
      /** Assigns the next epoch to a room. Returns it, and the snapshot if there is a row. */
      claim: claims,
      /** The next epoch, for an entity without a row. */
      nextEpoch: Effect.map(orDieWithTimeout(epoch(undefined)), (row) => row.epoch),
      /** Inserts a row; false if the id, or the code in this environment, is taken. */
      insert: inserts,
      /**
       * Writes snapshots, and returns the table epoch for each room that was written. A room that is
       * missing from the result belongs to a newer activation, or ended under one.
       */
      save: (rows: ReadonlyArray<Snapshot>) =>
        Effect.map(
          failOnTimeout(save(rows)),
          (saved): ReadonlyMap<string, number> =>
            new Map(saved.map(({ id, tableEpoch }) => [id, tableEpoch]))
        ),
      /**
       * Returns the ended activations that no newer activation has replaced. The value is true if the
       * activation wrote the room's row. It is false if the row is missing, or is older after a crash.
       */
      unclaimed: (left: ReadonlyArray<Pick<RoomRow, "id" | "epoch">>) =>
        Effect.map(
          failOnTimeout(unclaimed(left)),
          (rows): ReadonlyMap<string, boolean> =>
            new Map(rows.map(({ id, written }) => [id, written]))
        ),
      /** Removes the rows of closed rooms, unless a newer activation owns them. */
      remove: (over: ReadonlyArray<Pick<RoomRow, "id" | "epoch">>) =>
        Effect.flatMap(DateTime.now, (now) => failOnTimeout(remove({ over, now }))),
      /** The newest room in which each player has a seat, by player, as of the last snapshots. */
      seatsOf: (environmentId: string, playerIds: ReadonlyArray<string>) =>
        Effect.map(
          orDieWithTimeout(seats({ environmentId, playerIds })),
          (rows): ReadonlyMap<string, string> =>
            new Map(rows.flatMap(({ id, members }) => members.map((member) => [member, id])))
        ),
      /** All rooms in which a player has a seat, as of the last snapshots. */
      ofPlayer: (environmentId: string, playerId: string) =>
        Effect.map(orDieWithTimeout(ofPlayer({ environmentId, playerId })), idsOf),
      ...(yield* makeFinds(sql)),
      /** Rooms that matchmaking opened and may still fill, oldest first. */
      listOpen: (environmentId: string, mode: string, limit: number) =>
        orDieWithTimeout(open({ environmentId, mode, limit })),
      /** Rooms whose deadline has passed: no node has them. Skips the first ones. */
      overdue: (before: string, limit: number, skipped: number) =>
        Effect.map(orDieWithTimeout(overdue({ before, limit, skipped })), idsOf)
    }
  })
}) {
  static readonly layer = Layer.effect(RoomRepository, this.make)
}
