/**
 * Cache invalidation between nodes: one Postgres NOTIFY channel carries a message for every cached
 * value that has changed. So a change takes effect on all nodes within a second.
 *
 * A node receives its own messages too. Messages may be lost while the listening session is down: when
 * it is back, the node treats everything as changed.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import {
  Cause,
  Context,
  Deferred,
  Effect,
  Layer,
  Option,
  Queue,
  Schedule,
  Schema,
  Scope
} from "effect"
import { SqlClient } from "effect/sql"
import { orDieWithTimeout } from "#sql/database"

/**
 * Change of a cached value, by kind:
 *
 * - `config`: the config of the environment `id`;
 * - `key`: the key with the hash `id`;
 * - `player`: the player `<environment>/<player>`;
 * - `domains`: the custom domains of the environment `id`;
 * - `runners`: the list of runners;
 * - `functions`: the functions of the environment `id`;
 * - `everything`: any of them;
 * - `ackRequest` and `ack`: a request for acknowledgements, and an acknowledgement. Release 0.1 knows them
 *   as `asked` and `heard` only, which this release therefore sends.
 */
const Change = Schema.Struct({
  kind: Schema.Literals([
    "config",
    "key",
    "player",
    "domains",
    "runners",
    "functions",
    "everything",
    "ackRequest",
    "ack",
    "asked",
    "heard"
  ]),
  id: Schema.String
})
export type Change = typeof Change.Type

const channel = "svc_invalidation"

const everything: Change = { kind: "everything", id: "" }

const Message = Schema.fromJsonString(Change)
const encode = Schema.encodeSync(Message)
const decode = Schema.decodeUnknownOption(Message)

/** The pause before the listening session reconnects. */
const retryMillis = 250

/**
 * A node that has not acknowledged by then may be frozen, or have just left: nobody waits longer. It is real
 * time, also on a test clock, which the sessions of other nodes do not follow.
 */
const acknowledgementMillis = 1000

const acknowledgementsOverdue = Effect.callback<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), acknowledgementMillis)
  return Effect.sync(() => clearTimeout(timer))
})

/** An id for the request, and the number of sessions that listen on the channel. */
const Request = Schema.Tuple([Schema.Struct({ id: Schema.String, count: Schema.Int })])

type Listener = (change: Change) => Effect.Effect<void>

export class Invalidation extends Context.Service<
  Invalidation,
  {
    /** Sends a change to all nodes; within a transaction, when it commits. */
    readonly publish: (change: Change) => Effect.Effect<void>
    /** Runs `listener` for every change from now on, of any node. */
    readonly subscribe: (listener: Listener) => Effect.Effect<void>
    /** Waits until all nodes have applied the changes published before, at most a second. */
    readonly awaitAcknowledgements: Effect.Effect<void>
  }
>()("server/platform/invalidation/Invalidation") {
  static readonly layer: Layer.Layer<Invalidation, never, PgClient.PgClient | SqlClient.SqlClient> =
    Layer.effect(
      Invalidation,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const listeners = new Set<Listener>()
        const publish = (change: Change) =>
          Effect.asVoid(orDieWithTimeout(sql`select pg_notify(${channel}, ${encode(change)})`))
        const { awaitAcknowledgements, acknowledge } = makeAcknowledgements(sql, publish)
        listeners.add(acknowledge)
        yield* listenForever((change) =>
          Effect.forEach(listeners, (listener) => isolate(change, listener(change)), {
            discard: true
          })
        )
        return Invalidation.of({
          publish,
          subscribe: (listener) => Effect.sync(() => listeners.add(listener)),
          awaitAcknowledgements
        })
      })
    )
}

/**
 * Isolates a defect of one listener, which must not end the others, nor the session that all of
 * them share.
 */
const isolate = ({ kind }: Change, applied: Effect.Effect<void>) =>
  Effect.catchCauseIf(
    applied,
    (cause) => !Cause.hasInterruptsOnly(cause),
    (cause) =>
      Effect.annotateLogs(Effect.logError("Failed to apply an invalidation", cause), { kind })
  )

/**
 * Acknowledgements of all listening sessions. Postgres delivers messages in commit order, so a node
 * that acknowledges a request has received every change published before it.
 */
const makeAcknowledgements = (sql: SqlClient.SqlClient, publish: Listener) => {
  const pending = new Map<string, { missing: number; readonly all: Deferred.Deferred<void> }>()
  const awaitAcknowledgements = Effect.gen(function* () {
    const [{ count, id }] = yield* Effect.flatMap(
      sql`
        select gen_random_uuid()::text as id, count(*)::int as count from pg_stat_activity
        where datname = current_database() and query ilike ${`listen%${channel}%`}`,
      Schema.decodeUnknownEffect(Request)
    )
    const all = yield* Deferred.make<void>()
    pending.set(id, { missing: count, all })
    yield* Effect.ensuring(
      Effect.andThen(publish({ kind: "asked", id }), Deferred.await(all)),
      Effect.sync(() => pending.delete(id))
    )
  }).pipe(Effect.raceFirst(acknowledgementsOverdue), Effect.ignoreCause)
  const acknowledge: Listener = ({ id, kind }) => {
    if (kind === "asked" || kind === "ackRequest")
      return Effect.asVoid(Effect.forkDetach(publish({ kind: "heard", id })))
    const request = kind === "heard" || kind === "ack" ? pending.get(id) : undefined
    if (request === undefined || --request.missing > 0) return Effect.void
    return Effect.asVoid(Deferred.succeed(request.all, undefined))
  }
  return { awaitAcknowledgements, acknowledge }
}

/** Listens in its own database session and reconnects when that is lost; returns once it listens. */
const listenForever = Effect.fnUntraced(function* (listener: Listener) {
  const { config } = yield* PgClient.PgClient
  const listening = yield* Deferred.make<void>()
  const session = Effect.gen(function* () {
    // Scopes close in reverse order: the connection closes before UNLISTEN, which would hang on a frozen
    // server and does nothing on a closed connection.
    const subscription = yield* Effect.acquireRelease(Scope.make(), Scope.close)
    const connection = yield* PgConnection.make(config)
    const notifications = yield* Scope.provide(connection.listen(channel), subscription)
    yield* Deferred.succeed(listening, undefined)
    yield* listener(everything)
    return yield* Effect.forever(
      Effect.flatMap(Queue.take(notifications), ({ payload }) =>
        Option.match(decode(payload), { onNone: () => listener(everything), onSome: listener })
      )
    )
  }).pipe(Effect.scoped)
  yield* session.pipe(
    Effect.tapError((error) =>
      Effect.logWarning("Lost the session that listens for changes; reconnecting", error.message)
    ),
    Effect.retry(Schedule.spaced(retryMillis)),
    Effect.forkScoped
  )
  yield* Deferred.await(listening)
})
