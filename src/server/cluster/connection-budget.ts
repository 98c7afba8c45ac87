/**
 * Warns when the runners together may open more connections than Postgres allows. A pool opens them only
 * under load, so a runner starts nevertheless; but the statement or shard lock that meets the limit fails.
 */
import { Effect, Layer, Option, Schedule } from "effect"
import { RunnerStorage, ShardingConfig } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { connectionLimit } from "#sql/database"
import { Settings } from "#server/platform/settings/settings"
import { LockDatabaseLive, lockConnections, lockDatabaseVariable } from "./lock-database.ts"

const checkEvery = "1 minute"

export interface Budget {
  /** The variable with the database's URL. */
  readonly variable: string
  /** Most connections that Postgres allows. */
  readonly limit: number
  readonly runners: number
  /** Most connections of a runner: a pool, and sessions beside it. */
  readonly pool: number
  readonly besides: number
}

/** Warning for the operator; undefined while all connections fit. */
export const budgetWarning = (budget: Budget): string | undefined => {
  const { besides, limit, pool, runners, variable } = budget
  const each = pool + besides
  if (runners * each <= limit) return undefined
  const smaller = Math.floor(limit / runners) - besides
  const orSmaller =
    variable === lockDatabaseVariable || smaller < 1
      ? ""
      : `, or SVC_DATABASE_CONNECTIONS of every runner to ${smaller} or less`
  return (
    `${runners} runners may open ${runners * each} connections, ${each} each, but the Postgres of ` +
    `${variable} allows ${limit}. Raise max_connections (or the limit of the role or database) so that ` +
    `it allows ${(runners + 1) * each}, which includes one more runner during a deploy${orSmaller}.`
  )
}

/** Checks one database whenever more runners are listed than before. */
const budgetLayer = (database: Pick<Budget, "variable" | "pool" | "besides">) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { runnerAddress } = yield* ShardingConfig.ShardingConfig
      const storage = yield* RunnerStorage.RunnerStorage
      const sql = yield* SqlClient.SqlClient
      const self = Option.match(runnerAddress, { onNone: () => "", onSome: String })
      let checkedRunners = 0
      const check = Effect.gen(function* () {
        const listed = yield* storage.getRunners
        const runners = new Set([self, ...listed.map(([runner]) => String(runner.address))]).size
        if (runners <= checkedRunners) return
        const limit = yield* connectionLimit(sql)
        checkedRunners = runners
        const warning = budgetWarning({ ...database, runners, limit })
        if (warning !== undefined) yield* Effect.logWarning(warning)
      })
      yield* check.pipe(
        Effect.catchCause((cause) => Effect.logDebug("Failed to count the connections", cause)),
        Effect.repeat(Schedule.spaced(checkEvery)),
        Effect.forkScoped
      )
    })
  )

export const ConnectionBudget = Layer.unwrap(
  Effect.map(Settings, ({ databaseConnections, lockDatabaseUrl }) => {
    const own = { variable: "DATABASE_URL", pool: databaseConnections, besides: 1 }
    const locks = { variable: lockDatabaseVariable, pool: lockConnections, besides: 0 }
    const database = budgetLayer(own)
    return lockDatabaseUrl === undefined
      ? database
      : Layer.merge(database, Layer.provide(budgetLayer(locks), LockDatabaseLive))
  })
)
