/**
 * The database session that holds the runner's shard locks, to release many of them in one statement.
 * Effect Cluster needs two statements for each shard: a hundred shards take seconds on a busy machine,
 * and nobody owns them meanwhile.
 */
import { Context, Effect, Layer } from "effect"
import { type ShardId, ShardingConfig } from "effect/cluster"
import { SqlClient, type SqlConnection, type SqlError } from "effect/sql"

/** Lock numbers of the n-th shard group start at n times this, as Effect Cluster computes them. */
const groupOffset = 1_000_000

export class LockSession extends Context.Service<
  LockSession,
  {
    /** Releases the locks, however often each is held; returns how many of the shards were locked. */
    readonly unlock: (
      shards: ReadonlyArray<ShardId.ShardId>
    ) => Effect.Effect<number, SqlError.SqlError>
  }
>()("server/cluster/lock-session/LockSession") {}

type OnReserve = (connection: SqlConnection.Connection) => void

/** The same client; reports every connection that is reserved from it. */
const observed = (sql: SqlClient.SqlClient, onReserve: OnReserve): SqlClient.SqlClient =>
  new Proxy(sql, {
    get: (client, key) => {
      if (key === "withoutTransforms") return () => observed(client.withoutTransforms(), onReserve)
      if (key !== "reserve") return Reflect.get(client, key)
      return Effect.tap(client.reserve, (connection) => Effect.sync(() => onReserve(connection)))
    }
  })

/** The client for Effect Cluster's storage, and the session that the storage reserves. */
export const LockSessionLive = Layer.effectContext(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const config = yield* ShardingConfig.ShardingConfig
    const groups = Array.from(ShardingConfig.shardGroupConfig(config).available)
    const numberOf = ({ group, id }: ShardId.ShardId): number =>
      (groups.indexOf(group) + 1) * groupOffset + id
    let session: SqlConnection.Connection | undefined
    const client = observed(sql, (connection) => {
      session = connection
    })

    return Context.make(SqlClient.SqlClient, client).pipe(
      Context.add(LockSession, {
        unlock: Effect.fnUntraced(function* (shards) {
          if (session === undefined) return 0
          const numbers = shards.map(numberOf).join()
          // An acquisition that timed out and was repeated may hold a lock twice. Postgres counts.
          const unlockOnce = session.executeValuesUnprepared(
            `select pg_advisory_unlock(classid::int, objid::int) from pg_locks
             where locktype = 'advisory' and granted and objsubid = 2
               and pid = pg_backend_pid() and objid in (${numbers})`,
            []
          )
          const { length: unlocked } = yield* unlockOnce
          let held = unlocked
          while (held > 0) held = (yield* unlockOnce).length
          return unlocked
        })
      })
    )
  })
)
