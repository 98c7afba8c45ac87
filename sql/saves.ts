/**
 * Cloud saves (spec section 4.3). Each write is in one statement, so of writers at once every one builds
 * on the one before it, and a version is given once; writes that name no version share statements when
 * they are many. A deleted save stays as a row without data.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlError, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { saves as limits } from "#rpc/limits"
import { violatedConstraint, isRefused, orDieWithTimeout } from "./database.ts"
import { batchWrites } from "./batching.ts"

const Time = Schema.DateTimeUtcFromDate

/** Whose saves. */
const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })
export type SaveOwner = typeof Owner.Type

const Named = Schema.Struct({ ...Owner.fields, key: Schema.String })

const Item = Schema.Struct({
  key: Schema.String,
  version: Schema.Int,
  size: Schema.Int,
  updatedAt: Time
})
export type SaveItemRow = typeof Item.Type

/** `data` is JSON text. */
const Row = Schema.Struct({ ...Item.fields, data: Schema.String })

const Write = Schema.Struct({
  ...Named.fields,
  data: Schema.String,
  size: Schema.Int,
  now: Time,
  /** How many saves the player may have. */
  most: Schema.Int
})

const Versioned = Schema.Struct({ version: Schema.Int })

/** The writes of one statement, each of another player: one JSON parameter. */
const Writes = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ ...Write.fields, now: Schema.DateTimeUtcFromString }))
)

const IfVersion = Schema.Int

const upserts = (sql: SqlClient.SqlClient) => {
  // The versions of a save whose row was forgotten go on from the player's floor.
  const upsert = ({
    data,
    environmentId,
    key,
    most,
    now,
    playerId,
    size
  }: typeof Write.Encoded) => ({
    put: sql`
      insert into saves as s (environment_id, player_id, key, version, data, size, updated_at, fresh)
      values (${environmentId}, ${playerId}, ${key}, 1 + coalesce((select floor from save_counts
          where player_id = ${playerId} and environment_id = ${environmentId}), 0),
        ${data}, ${size}, ${now}, true)
      on conflict (player_id, environment_id, key) do update set version = s.version + 1,
        data = excluded.data, size = excluded.size, updated_at = excluded.updated_at,
        fresh = s.data is null`,
    // A save that was not there before counts; the count's constraint ends the whole statement.
    counted: sql`
      insert into save_counts as c (environment_id, player_id, saves, most, deleted, floor)
      select ${environmentId}, ${playerId}, 1, ${most}::int, 0, 0 from put where fresh
      on conflict (player_id, environment_id) do update set saves = c.saves + 1,
        most = excluded.most`
  })
  return {
    put: SqlSchema.findOneOption({
      Request: Write,
      Result: Versioned,
      execute: (write) => {
        const { counted, put } = upsert(write)
        return sql`
          with put as (${put} returning s.version, s.fresh), counted as (${counted})
          select version from put`
      }
    }),
    create: SqlSchema.findOneOption({
      Request: Write,
      Result: Versioned,
      execute: (write) => {
        const { counted, put } = upsert(write)
        return sql`
          with put as (${put} where s.data is null returning s.version, s.fresh),
            counted as (${counted})
          select version from put`
      }
    })
  }
}

/** The same upsert for many players; all take their locks in one order, so that none waits for ever. */
const manyUpserts = (sql: SqlClient.SqlClient) => ({
  putAll: SqlSchema.findAll({
    Request: Writes,
    Result: Schema.Struct({ playerId: PlayerId, ...Versioned.fields }),
    execute: (writes) => sql`
      with asked as (
        select r."environmentId" as environment_id, r."playerId" as player_id, r.key, r.data, r.size,
          r.now, r.most
        from json_to_recordset(${writes}::text::json) as r("environmentId" text, "playerId" text,
          key text, data text, size int, now timestamptz, most int)
      ), put as (
        insert into saves as s
          (environment_id, player_id, key, version, data, size, updated_at, fresh)
        select environment_id, player_id, key, 1 + coalesce((select floor from save_counts c
            where c.player_id = a.player_id and c.environment_id = a.environment_id), 0),
          data, size, now, true
        from asked a order by player_id
        on conflict (player_id, environment_id, key) do update set version = s.version + 1,
          data = excluded.data, size = excluded.size, updated_at = excluded.updated_at,
          fresh = s.data is null
        returning s.environment_id, s.player_id, s.version, s.fresh
      ), counted as (
        insert into save_counts as c (environment_id, player_id, saves, most, deleted, floor)
        select a.environment_id, a.player_id, 1, a.most, 0, 0
        from put join asked a using (player_id) where put.fresh order by a.player_id
        on conflict (player_id, environment_id) do update set saves = c.saves + 1,
          most = excluded.most
      )
      select player_id, version from put`
  })
})

const changes = (sql: SqlClient.SqlClient) => ({
  replace: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Write.fields, ifVersion: IfVersion }),
    Result: Versioned,
    execute: ({ data, environmentId, ifVersion, key, now, playerId, size }) => sql`
        update saves set version = version + 1, data = ${data}, size = ${size}, updated_at = ${now},
          fresh = false
        where player_id = ${playerId} and environment_id = ${environmentId} and key = ${key}
          and data is not null and version = ${ifVersion}::bigint
        returning version`
  }),
  remove: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Named.fields, ifVersion: Schema.NullOr(IfVersion), now: Time }),
    Result: Versioned,
    execute: ({ environmentId, ifVersion, key, now, playerId }) => sql`
        with gone as (
          update saves set data = null, size = 0, updated_at = ${now}
          where player_id = ${playerId} and environment_id = ${environmentId} and key = ${key}
            and data is not null
            and (${ifVersion}::bigint is null or version = ${ifVersion}::bigint)
          returning version
        ), counted as (
          update save_counts set saves = saves - 1, deleted = deleted + 1 from gone
          where player_id = ${playerId} and environment_id = ${environmentId}
        )
        select version from gone`
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
    Request: Named,
    Result: Row,
    execute: ({ environmentId, key, playerId }) => sql`
      select key, version, size, updated_at, data from saves
      where player_id = ${playerId} and environment_id = ${environmentId} and key = ${key}
        and data is not null`
  }),
  version: SqlSchema.findOneOption({
    Request: Named,
    Result: Versioned,
    execute: ({ environmentId, key, playerId }) => sql`
      select version from saves
      where player_id = ${playerId} and environment_id = ${environmentId} and key = ${key}
        and data is not null`
  })
})

/**
 * Forgets the rows of deleted saves of those who deleted very many, in two steps an hour apart: first
 * the player's floor rises above their versions, and only when no statement is left that has not seen
 * that do the rows go.
 */
const sweeps = (sql: SqlClient.SqlClient) => ({
  forget: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`
      delete from saves s using save_counts c
      where c.floor > 0 and s.player_id = c.player_id and s.environment_id = c.environment_id
        and s.data is null and s.version <= c.floor and s.updated_at < ${before}`
  }),
  raise: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`
      update save_counts c set deleted = 0, floor = greatest(c.floor, coalesce((
          select max(s.version) from saves s
          where s.player_id = c.player_id and s.environment_id = c.environment_id
            and s.data is null and s.updated_at < ${before}), 0))
      where c.deleted > ${limits.deletedKept}::int`
  })
})

/** The version of what was written, or why nothing was. */
export type SaveWriteResult = number | "version_conflict" | "too_many_saves" | "no_player"

/** The constraint that a statement broke; anything else is a fault. */
const constraintResult = (error: SqlError.SqlError): Effect.Effect<SaveWriteResult> => {
  const constraint = violatedConstraint(error)
  if (constraint === undefined) return Effect.die(error)
  return Effect.succeed(constraint === "too_many_saves" ? "too_many_saves" : "no_player")
}

const writeResult = <E>(
  statement: Effect.Effect<Option.Option<typeof Versioned.Type>, SqlError.SqlError | E>
): Effect.Effect<SaveWriteResult> =>
  orDieWithTimeout(
    statement.pipe(
      Effect.map((row): SaveWriteResult =>
        Option.isSome(row) ? row.value.version : "version_conflict"
      ),
      Effect.catchIf(SqlError.isSqlError, constraintResult)
    )
  )

/** Rows in and out of `saves`. */
export class SaveRepository extends Context.Service<SaveRepository>()("sql/saves/SaveRepository", {
  make: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { create, put } = upserts(sql)
    const { putAll } = manyUpserts(sql)
    const { remove, replace } = changes(sql)
    const { find, list, version } = reads(sql)
    const { forget, raise } = sweeps(sql)
    const gathered = yield* batchWrites<typeof Write.Type, SaveWriteResult>({
      ownerOf: ({ playerId }) => playerId,
      sizeOf: ({ size }) => size,
      alone: (write) => writeResult(put(write)),
      together: (writes) =>
        orDieWithTimeout(
          putAll(writes).pipe(
            Effect.map((rows) => new Map(rows.map(({ playerId, version }) => [playerId, version]))),
            Effect.catchIf(isRefused, () => Effect.succeed("refused" as const))
          )
        )
    })
    return {
      /** The player's saves, the one written last first. */
      list: (owner: SaveOwner) => orDieWithTimeout(list(owner)),
      find: (request: typeof Named.Type) => orDieWithTimeout(find(request)),
      /** The version that a save has; 0 when there is none. */
      versionOf: (request: typeof Named.Type) =>
        Effect.map(
          orDieWithTimeout(version(request)),
          Option.match({ onNone: () => 0, onSome: (row) => row.version })
        ),
      /** Writes a save, if it has the version that was read (0: if there is none). */
      put: (write: typeof Write.Type, ifVersion: number | undefined) => {
        if (ifVersion === undefined) return gathered(write)
        return writeResult(ifVersion === 0 ? create(write) : replace({ ...write, ifVersion }))
      },
      /** Whether a save was deleted: it was there, and of the version that was read. */
      remove: (request: Parameters<typeof remove>[0]) =>
        Effect.map(orDieWithTimeout(remove(request)), Option.isSome),
      /** To be called from time to time: forgets saves deleted before a time where they are many. */
      sweep: (before: typeof Time.Type) =>
        Effect.orDie(Effect.andThen(forget(before), raise(before)))
    }
  })
}) {
  static readonly layer = Layer.effect(SaveRepository, this.make)
}
