/**
 * Cloud saves. Each write is one statement, so concurrent writes serialize and each version is issued
 * once. Under load, unconditional writes of different players share a statement, and so do reads of
 * small saves. A deleted save stays as a row without data. A trigger keeps `save_counts.bytes`, and
 * refuses growth beyond the quotas.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlError, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { saveLimits } from "#rpc/saves"
import { violatedConstraint, isRefused, orDieWithTimeout } from "./database.ts"
import { batchReads, batchWrites } from "./batching.ts"

const Time = Schema.DateTimeUtcFromDate

/** The player who owns the saves. */
const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })
export type SaveOwner = typeof Owner.Type

const SaveRef = Schema.Struct({ ...Owner.fields, key: Schema.String })

const Item = Schema.Struct({
  key: Schema.String,
  version: Schema.Int,
  size: Schema.Int,
  updatedAt: Time
})
export type SaveItemRow = typeof Item.Type

/** Row of a save; `data` is JSON text. */
const Row = Schema.Struct({ ...Item.fields, data: Schema.String })

const Shared = { playerId: Schema.String, data: Schema.NullOr(Schema.String) }

/** A row of a shared read; `data` is null if it is too large for one. */
const SharedRow = Schema.Struct({ ...Item.fields, ...Shared })

/**
 * Size above which a save is read alone, and number of saves in a shared read. So the result of a
 * shared read stays about 1 MiB.
 */
const sharedMaxBytes = 16 * 1024
const sharedMax = 64

const Write = Schema.Struct({
  ...SaveRef.fields,
  data: Schema.String,
  size: Schema.Int,
  now: Time,
  /** The number of saves that the player may have. */
  maxSaves: Schema.Int,
  /** The bytes that all saves of the player may have while it is a guest. */
  guestBytesMax: Schema.Int,
  /** The bytes by which the saves of the environment may grow; null: more than a save can have. */
  environmentBytesLeft: Schema.NullOr(Schema.Int)
})

const VersionRow = Schema.Struct({ version: Schema.Int })

/** `growth`: the bytes that the write has added. */
const WrittenRow = Schema.Struct({ ...VersionRow.fields, growth: Schema.Int })

const BytesRow = Schema.Struct({ bytes: Schema.Int })

/** The writes of one statement, at most one per player, as one JSON parameter. */
const Writes = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ ...Write.fields, now: Schema.DateTimeUtcFromString }))
)

const IfVersion = Schema.Int

/** Sets an existing save to the row that was to be inserted. */
const overwrite = (sql: SqlClient.SqlClient) => sql`
  version = s.version + 1, data = excluded.data, size = excluded.size,
  updated_at = excluded.updated_at, fresh = s.data is null, growth = excluded.size - s.size,
  guest_bytes_most = excluded.guest_bytes_most, environment_room = excluded.environment_room`

const upserts = (sql: SqlClient.SqlClient) => {
  const overwritten = overwrite(sql)
  // A save whose deleted row was swept continues above the player's version floor.
  const upsert = ({
    data,
    environmentId,
    environmentBytesLeft,
    guestBytesMax,
    key,
    maxSaves,
    now,
    playerId,
    size
  }: typeof Write.Encoded) => ({
    put: sql`
      insert into saves as s (environment_id, player_id, key, version, data, size, updated_at, fresh,
        growth, guest_bytes_most, environment_room)
      values (${environmentId}, ${playerId}, ${key}, 1 + coalesce((select floor from save_counts
          where player_id = ${playerId} and environment_id = ${environmentId}), 0),
        ${data}, ${size}, ${now}, true, ${size}, ${guestBytesMax}, ${environmentBytesLeft})
      on conflict (player_id, environment_id, key) do update set ${overwritten}`,
    // Only a new save counts. A violated `too_many_saves` constraint rolls the whole statement back.
    counted: sql`
      insert into save_counts as c (environment_id, player_id, saves, most, deleted, floor)
      select ${environmentId}, ${playerId}, 1, ${maxSaves}::int, 0, 0 from put where fresh
      on conflict (player_id, environment_id) do update set saves = c.saves + 1,
        most = excluded.most`
  })
  return {
    put: SqlSchema.findOneOption({
      Request: Write,
      Result: WrittenRow,
      execute: (write) => {
        const { counted, put } = upsert(write)
        return sql`
          with put as (${put} returning s.version, s.fresh, s.growth), counted as (${counted})
          select version, growth from put`
      }
    }),
    create: SqlSchema.findOneOption({
      Request: Write,
      Result: WrittenRow,
      execute: (write) => {
        const { counted, put } = upsert(write)
        return sql`
          with put as (${put} where s.data is null returning s.version, s.fresh, s.growth),
            counted as (${counted})
          select version, growth from put`
      }
    })
  }
}

/**
 * Upsert for several players, in environments that are not nearly full. It locks rows in player
 * order, so statements cannot deadlock, and rows of `save_counts` before the trigger updates them.
 */
const manyUpserts = (sql: SqlClient.SqlClient) => ({
  putAll: SqlSchema.findAll({
    Request: Writes,
    Result: Schema.Struct({ playerId: PlayerId, ...WrittenRow.fields }),
    execute: (writes) => sql`
      with requested as (
        select r."environmentId" as environment_id, r."playerId" as player_id, r.key, r.data, r.size,
          r.now, r."maxSaves" as most, r."guestBytesMax" as guest_bytes_most
        from json_to_recordset(${writes}::text::json) as r("environmentId" text, "playerId" text,
          key text, data text, size int, now timestamptz, "maxSaves" int, "guestBytesMax" bigint)
      ), put as (
        insert into saves as s
          (environment_id, player_id, key, version, data, size, updated_at, fresh, growth,
            guest_bytes_most)
        select environment_id, player_id, key, 1 + coalesce((select floor from save_counts c
            where c.player_id = a.player_id and c.environment_id = a.environment_id), 0),
          data, size, now, true, size, guest_bytes_most
        from requested a order by player_id
        on conflict (player_id, environment_id, key) do update set ${overwrite(sql)}
        returning s.environment_id, s.player_id, s.version, s.fresh, s.growth
      ), counted as (
        insert into save_counts as c (environment_id, player_id, saves, most, deleted, floor)
        select a.environment_id, a.player_id, put.fresh::int, a.most, 0, 0
        from put join requested a using (player_id) order by a.player_id
        on conflict (player_id, environment_id) do update set saves = c.saves + excluded.saves,
          most = case excluded.saves when 0 then c.most else excluded.most end
      )
      select player_id, version, growth from put`
  })
})

const updates = (sql: SqlClient.SqlClient) => ({
  replace: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Write.fields, ifVersion: IfVersion }),
    Result: WrittenRow,
    execute: ({ ifVersion, ...write }) => sql`
        update saves set version = version + 1, data = ${write.data}, size = ${write.size},
          updated_at = ${write.now}, fresh = false, growth = ${write.size} - size,
          guest_bytes_most = ${write.guestBytesMax}, environment_room = ${write.environmentBytesLeft}
        where player_id = ${write.playerId} and environment_id = ${write.environmentId}
          and key = ${write.key} and data is not null and version = ${ifVersion}::bigint
        returning version, growth`
  }),
  remove: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...SaveRef.fields, ifVersion: Schema.NullOr(IfVersion), now: Time }),
    Result: WrittenRow,
    execute: ({ environmentId, ifVersion, key, now, playerId }) => sql`
        with removed as (
          update saves set data = null, size = 0, growth = -size, updated_at = ${now}
          where player_id = ${playerId} and environment_id = ${environmentId} and key = ${key}
            and data is not null
            and (${ifVersion}::bigint is null or version = ${ifVersion}::bigint)
          returning version, growth
        ), counted as (
          update save_counts set saves = saves - 1, deleted = deleted + 1 from removed
          where player_id = ${playerId} and environment_id = ${environmentId}
        )
        select version, growth from removed`
  })
})

const reads = (sql: SqlClient.SqlClient) => ({
  list: SqlSchema.findAll({
    Request: Owner,
    Result: Item,
    execute: ({ environmentId, playerId }) => sql`
      select key, version, size, updated_at from saves
      where player_id = ${playerId} and environment_id = ${environmentId} and data is not null
      order by updated_at desc, key`
  }),
  find: SqlSchema.findOneOption({
    Request: SaveRef,
    Result: Row,
    execute: ({ environmentId, key, playerId }) => sql`
      select key, version, size, updated_at, data from saves
      where player_id = ${playerId} and environment_id = ${environmentId} and key = ${key}
        and data is not null`
  }),
  next: SqlSchema.findOneOption({
    Request: SaveRef,
    Result: Row,
    execute: ({ environmentId, key, playerId }) => sql`
      select key, version, size, updated_at, data from saves
      where player_id = ${playerId} and environment_id = ${environmentId} and key > ${key}
        and data is not null order by key limit 1`
  }),
  findAll: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      playerIds: Schema.Array(Schema.String),
      keys: Schema.Array(Schema.String)
    }),
    Result: SharedRow,
    execute: ({ environmentId, keys, playerIds }) => sql`
      select wanted.player_id, wanted.key, s.*
      from unnest(${[...playerIds]}::text[], ${[...keys]}::text[]) as wanted(player_id, key),
        lateral (
          select version, size, updated_at,
            case when size <= ${sql.literal(`${sharedMaxBytes}`)} then data end as data
          from saves where player_id = wanted.player_id and key = wanted.key
            and environment_id = ${environmentId} and data is not null
          -- A look-up of each, however small the table was when the statement was planned.
          offset 0) as s`
  }),
  item: SqlSchema.findOneOption({
    Request: SaveRef,
    Result: Item,
    execute: ({ environmentId, key, playerId }) => sql`
      select key, version, size, updated_at from saves
      where player_id = ${playerId} and environment_id = ${environmentId} and key = ${key}
        and data is not null`
  }),
  bytesOfPlayer: SqlSchema.findOne({
    Request: Owner,
    Result: BytesRow,
    execute: ({ environmentId, playerId }) => sql`
      select coalesce(sum(bytes), 0)::float8 as bytes from save_counts
      where player_id = ${playerId} and environment_id = ${environmentId}`
  }),
  bytesOfEnvironment: SqlSchema.findOne({
    Request: EnvironmentId,
    Result: BytesRow,
    execute: (environmentId) => sql`
      select coalesce(sum(bytes), 0)::float8 as bytes from save_counts
      where environment_id = ${environmentId}`
  })
})

/**
 * Removes the rows of deleted saves for players who deleted more than `deletedKept`, in two sweeps an
 * hour apart. The first raises the player's version floor above the deleted versions. The second
 * deletes the rows, when no running statement can still use the old floor.
 */
const cleanup = (sql: SqlClient.SqlClient) => ({
  deleteBelowFloor: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`
      delete from saves s using save_counts c
      where c.floor > 0 and s.player_id = c.player_id and s.environment_id = c.environment_id
        and s.data is null and s.version <= c.floor and s.updated_at < ${before}`
  }),
  raiseFloor: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`
      update save_counts c set deleted = 0, floor = greatest(c.floor, coalesce((
          select max(s.version) from saves s
          where s.player_id = c.player_id and s.environment_id = c.environment_id
            and s.data is null and s.updated_at < ${before}), 0))
      where c.deleted > ${saveLimits.deletedKept}::int`
  })
})

/** Constraints that a write may violate, each the reason of a refusal. */
const bounds = ["too_many_saves", "guest_save_bytes", "environment_save_bytes"] as const

/** New version and its added bytes, or the reason why the write failed. */
export type SaveWriteResult =
  | typeof WrittenRow.Type
  | (typeof bounds)[number]
  | "version_conflict"
  | "no_player"

/** Maps a violated constraint to a result; any other error is a defect. */
const constraintResult = (error: SqlError.SqlError): Effect.Effect<SaveWriteResult> => {
  const constraint = violatedConstraint(error)
  if (constraint === undefined) return Effect.die(error)
  return Effect.succeed(bounds.find((bound) => bound === constraint) ?? "no_player")
}

const runWrite = <E>(
  statement: Effect.Effect<Option.Option<typeof WrittenRow.Type>, SqlError.SqlError | E>
): Effect.Effect<SaveWriteResult> =>
  orDieWithTimeout(
    statement.pipe(
      Effect.map((row): SaveWriteResult => (Option.isSome(row) ? row.value : "version_conflict")),
      Effect.catchIf(SqlError.isSqlError, constraintResult)
    )
  )

/** The id of a save in a shared read. No id of a player has a slash. */
const sharedId = (playerId: string, key: string): string => `${playerId}/${key}`

/** Reads a save: a small one together with others, a large one alone. */
const makeFind = Effect.fnUntraced(function* ({ find, findAll }: ReturnType<typeof reads>) {
  const shared = yield* batchReads((environmentId, ids) => {
    const refs = ids.map((id) => {
      const slash = id.indexOf("/")
      return [id.slice(0, slash), id.slice(slash + 1)] as const
    })
    const playerIds = refs.map(([playerId]) => playerId)
    const keys = refs.map(([, key]) => key)
    return Effect.map(
      orDieWithTimeout(findAll({ environmentId, playerIds, keys })),
      (rows) => new Map(rows.map((row) => [sharedId(row.playerId, row.key), row]))
    )
  }, sharedMax)
  return Effect.fnUntraced(function* (request: typeof SaveRef.Type) {
    const id = sharedId(request.playerId, request.key)
    const row = (yield* shared(request.environmentId, [id])).get(id)
    if (row === undefined) return Option.none<typeof Row.Type>()
    const { data } = row
    return data === null ? yield* orDieWithTimeout(find(request)) : Option.some({ ...row, data })
  })
})

/** Repository of `saves` and `save_counts`. */
export class SaveRepository extends Context.Service<SaveRepository>()("sql/saves/SaveRepository", {
  make: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { create, put } = upserts(sql)
    const { putAll } = manyUpserts(sql)
    const { remove, replace } = updates(sql)
    const statements = reads(sql)
    const { bytesOfEnvironment, bytesOfPlayer, list, item, next } = statements
    const find = yield* makeFind(statements)
    const { deleteBelowFloor, raiseFloor } = cleanup(sql)
    const batched = yield* batchWrites<typeof Write.Type, SaveWriteResult>({
      ownerOf: ({ playerId }) => playerId,
      tenantOf: ({ environmentId }) => environmentId,
      sizeOf: ({ size }) => size,
      single: (write) => runWrite(put(write)),
      batch: (writes) =>
        orDieWithTimeout(
          putAll(writes).pipe(
            Effect.map((rows) => new Map(rows.map(({ playerId, ...row }) => [playerId, row]))),
            Effect.catchIf(isRefused, () => Effect.succeed("refused" as const))
          )
        )
    })
    return {
      /** Lists the player's saves, most recently written first. */
      list: (owner: SaveOwner) => orDieWithTimeout(list(owner)),
      /** Reads a save, outside of any transaction. */
      find,
      /** Reads the first save with a key after this one. */
      next: (request: typeof SaveRef.Type) => orDieWithTimeout(next(request)),
      /** Finds a save without its data. */
      item: (request: typeof SaveRef.Type) => orDieWithTimeout(item(request)),
      /** Writes a save if its version is `ifVersion`; 0 requires that the save does not exist. */
      put: (write: typeof Write.Type, ifVersion: number | undefined) => {
        // A full environment must not have the batches of the others refused.
        if (ifVersion === undefined && write.environmentBytesLeft === null) return batched(write)
        if (ifVersion === undefined) return runWrite(put(write))
        return runWrite(ifVersion === 0 ? create(write) : replace({ ...write, ifVersion }))
      },
      /** Deletes a save if its version matches; returns the growth, none if it was not deleted. */
      remove: (request: Parameters<typeof remove>[0]) =>
        Effect.map(
          orDieWithTimeout(remove(request)),
          Option.map(({ growth }) => growth)
        ),
      /** Returns the bytes of all saves of a player. */
      bytesOfPlayer: (owner: SaveOwner) =>
        Effect.map(orDieWithTimeout(bytesOfPlayer(owner)), ({ bytes }) => bytes),
      /** Sums the bytes of all saves of an environment. */
      bytesOfEnvironment: (environmentId: EnvironmentId) =>
        Effect.map(orDieWithTimeout(bytesOfEnvironment(environmentId)), ({ bytes }) => bytes),
      /** Removes excess rows of saves that were deleted before a time. Call it periodically. */
      sweep: (before: typeof Time.Type) =>
        Effect.orDie(Effect.andThen(deleteBelowFloor(before), raiseFloor(before)))
    }
  })
}) {
  static readonly layer = Layer.effect(SaveRepository, this.make)
}
