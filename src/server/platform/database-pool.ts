/**
 * Connection pool that environments share fairly: slow or many statements of one environment delay its
 * own. The service's own work, such as snapshots of rooms, comes first.
 */
import { Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { type ConnectionPermit, ConnectionShares } from "#sql/connection-shares"
import { type DatabaseOptions, poolLayer } from "#sql/database"
import { FairSemaphore } from "./fair-semaphore.ts"
import { tenantOf } from "./tenant.ts"

/** Statements of one process that wait for a connection. The pool's size is a setting. */
const databasePool = {
  /** Connections of an environment for each free one: one gets at most 80 %, two get 44 % each. */
  share: 4,
  /** Waiting statements and transactions of one environment; beyond it 503 `unavailable`. */
  waitingPerKey: 1000,
  waitMillis: 5000
} as const

/** Counts as an unreachable database: HTTP answers 503 `unavailable`. */
const tooManyStatements = Effect.fail(
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({
      cause: undefined,
      message: "Too many statements of one environment wait for a connection"
    })
  })
)

const makeShares = (connections: number): ConnectionPermit => {
  const semaphore = new FairSemaphore({
    ...databasePool,
    permits: connections,
    refuse: tooManyStatements
  })
  return (work) => Effect.withFiber((fiber) => semaphore.withPermit(tenantOf(fiber))(work))
}

/** The pool, with its connections divided between tenants. */
export const sharedPoolLayer = (options: DatabaseOptions) =>
  Layer.merge(poolLayer(options), Layer.succeed(ConnectionShares, makeShares(options.connections)))
