/**
 * The database session that holds the runner's shard locks, to let many of them go in one statement.
 * The library asks twice for each shard, so a hundred of them take seconds on a busy machine, and
 * nobody has these shards meanwhile.
 */
import { Context, Effect, Layer } from "effect"
import { type ShardId, ShardingConfig } from "effect/cluster"
import { SqlClient, type SqlConnection, type SqlError } from "effect/sql"

/** Where the library counts the locks of a group from: its first group, its second and so on. */
const groupNumbers = 1_000_000

export class LockSession extends Context.Service<
  LockSession,
  {
    /** Answers how many of the shards were locked, and are not any more. */
    readonly unlock: (
      shards: ReadonlyArray<ShardId.ShardId>
    ) => Effect.Effect<number, SqlError.SqlError>
  }
>()("server/cluster/lock-session/LockSession") {}

type Reserved = (connection: SqlConnection.Connection) => void

/** The same client; says which connections are reserved from it. */
const observed = (sql: SqlClient.SqlClient, reserved: Reserved): SqlClient.SqlClient =>
  new Proxy(sql, {
    get: (client, key) => {
      if (key === "withoutTransforms") return () => observed(client.withoutTransforms(), reserved)
      if (key !== "reserve") return Reflect.get(client, key)
      return Effect.tap(client.reserve, (connection) => Effect.sync(() => reserved(connection)))
    }
  })

/** The client for the library's storage, and the session that it reserves. */
export const LockSessionLive = Layer.effectContext(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const config = yield* ShardingConfig.ShardingConfig
    const groups = Array.from(ShardingConfig.shardGroupConfig(config).available)
    const numberOf = ({ group, id }: ShardId.ShardId): number =>
      (groups.indexOf(group) + 1) * groupNumbers + id
    let session: SqlConnection.Connection | undefined
    const client = observed(sql, (connection) => {
      session = connection
    })

    return Context.make(SqlClient.SqlClient, client).pipe(
      Context.add(LockSession, {
        unlock: Effect.fnUntraced(function* (shards) {
          if (session === undefined) return 0
          const numbers = shards.map(numberOf).join()
          const rows = yield* session.executeValuesUnprepared(
            `select pg_advisory_unlock(classid::int, objid::int) from pg_locks
             where locktype = 'advisory' and granted and objsubid = 2
               and pid = pg_backend_pid() and objid in (${numbers})`,
            []
          )
          return rows.filter(([unlocked]) => unlocked === true).length
        })
      })
    )
  })
)
