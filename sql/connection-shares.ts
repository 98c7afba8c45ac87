/**
 * Shares of the connection pool: its provider may divide the connections between tenants. A
 * statement, or a transaction with all its statements, takes one permit.
 */
import { Context, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

/** Runs work that needs a connection, when it is its turn. */
export type ConnectionPermit = <A, E, R>(
  work: Effect.Effect<A, E, R>
) => Effect.Effect<A, E | SqlError.SqlError, R>

/** Permits for connections. By default, the order of arrival at the pool decides. */
export const ConnectionShares = Context.Reference<ConnectionPermit>(
  "sql/connection-shares/ConnectionShares",
  { defaultValue: () => (work) => work }
)

/** Whether the work has a permit already, as the statements of a transaction do. */
const HasPermit = Context.Reference("sql/connection-shares/HasPermit", {
  defaultValue: () => false
})

/** Runs work that needs a connection under one permit. */
export const withConnectionPermit: ConnectionPermit = (work) =>
  Effect.withFiber((fiber) =>
    fiber.getRef(HasPermit)
      ? work
      : fiber.getRef(ConnectionShares)(Effect.provideService(work, HasPermit, true))
  )

/** The same client, whose transactions take a permit. */
export const withSharedTransactions = <Client extends SqlClient.SqlClient>(
  client: Client
): Client => {
  const { withTransaction } = client
  return Object.assign(client, {
    withTransaction: <A, E, R>(work: Effect.Effect<A, E, R>) =>
      withConnectionPermit(withTransaction(work))
  })
}
