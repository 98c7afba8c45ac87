/**
 * Supervisor of the embedded Postgres: every service watches a session of its own. When the session ends,
 * the server has died, or another service stopped it by force. One of the services restarts it on its port,
 * under the start lock; the others find it there.
 *
 * A server that does not start, such as on a full disk, is tried again for as long as the service runs.
 */
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import { Clock, Effect, Queue, type Scope } from "effect"
import { EmbeddedPostgresError } from "./binaries.ts"
import { reasonOf } from "./server.ts"
import type { SqlError } from "effect/sql/SqlError"

/** A running server, with a session on it. */
interface Joined {
  readonly port: number
  readonly session: PgConnection.PgConnection
}

/** Channel that nobody notifies: a session that listens notices its end without a statement. */
const channel = "svc_supervisor"

const firstDelayMillis = 100
const longestDelayMillis = 5000
/** A server that ran for this long is restarted at once. */
const steadyMillis = 30_000

/** Waits until the session ends. */
const untilLost = (session: PgConnection.PgConnection) =>
  session.listen(channel).pipe(
    Effect.flatMap((queue) => Effect.forever(Queue.take(queue))),
    Effect.scoped,
    Effect.ignore
  )

const messageOf = (error: { readonly message: string } | SqlError): string =>
  error instanceof EmbeddedPostgresError || !("reason" in error) ? error.message : reasonOf(error)

/** Supervises the server until the scope closes. The state is current at each read. */
export const supervise = Effect.fnUntraced(function* <
  E extends { readonly message: string },
  R
>(options: {
  readonly joined: Joined
  /** Joins the server or starts it on the port, if it is free. */
  readonly rejoin: (port: number) => Effect.Effect<Joined, E, R | Scope.Scope>
}) {
  const clock = yield* Clock.Clock
  const state = { port: options.joined.port, isRestarting: false }
  let delay = 0
  let lostAt = 0

  const lost = Effect.suspend(() => {
    state.isRestarting = true
    lostAt = clock.currentTimeMillisUnsafe()
    return Effect.logWarning("The embedded Postgres is gone: restarting it")
  })
  const attempt = Effect.gen(function* () {
    yield* Effect.sleep(delay)
    delay = Math.min(longestDelayMillis, Math.max(firstDelayMillis, delay * 2))
    const { port, session } = yield* options.rejoin(state.port)
    const since = clock.currentTimeMillisUnsafe()
    Object.assign(state, { port, isRestarting: false })
    yield* Effect.logInfo(
      `The embedded Postgres is back on port ${port} after ${(since - lostAt) / 1000} seconds`
    )
    yield* untilLost(session)
    if (clock.currentTimeMillisUnsafe() - since >= steadyMillis) delay = 0
    yield* lost
  }).pipe(
    Effect.scoped,
    Effect.catch((error) =>
      Effect.logError(`Failed to restart the embedded Postgres, trying again: ${messageOf(error)}`)
    )
  )
  yield* untilLost(options.joined.session).pipe(
    Effect.andThen(lost),
    Effect.andThen(Effect.forever(attempt)),
    Effect.forkScoped
  )
  return state
})
