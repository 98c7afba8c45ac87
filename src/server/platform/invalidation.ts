/**
 * What any node changed: a message on one Postgres channel for every cached thing that is no longer
 * true, so that a change is in force on all nodes within a second (design section 6).
 *
 * A node hears its own messages too. Whatever is lost while the listening session is down is made up
 * for when it is back: then everything counts as changed.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Deferred, Effect, Layer, Option, Queue, Schedule, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { orDieWithTimeout } from "#sql/database"

/**
 * The config of an environment, a key (by its hash), a player (by `<environment>/<player>`), the list
 * of runners (or, by `<address> <address>`, what the one thinks of the other), or possibly everything.
 * `asked` and `heard` are how a node learns that all have heard.
 */
const Change = Schema.Struct({
  kind: Schema.Literals(["config", "key", "player", "runners", "everything", "asked", "heard"]),
  id: Schema.String
})
export type Change = typeof Change.Type

const channel = "svc_invalidation"

const everything: Change = { kind: "everything", id: "" }

const Message = Schema.fromJsonString(Change)
const encode = Schema.encodeSync(Message)
const decode = Schema.decodeUnknownOption(Message)

/** How long to wait before the listening session is opened again. */
const retryMillis = 250

/** How long a node may take to hear before nobody waits for it any more: it may be frozen. */
const hearing = "1 second"

/** The sessions that listen. */
const Listeners = Schema.Tuple([Schema.Struct({ id: Schema.String, count: Schema.Int })])

type Hearer = (change: Change) => Effect.Effect<void>

export class Invalidation extends Context.Service<
  Invalidation,
  {
    /** Tells all nodes; inside a transaction, once that is committed. */
    readonly publish: (change: Change) => Effect.Effect<void>
    /** From now on `hearer` runs for every change that any node tells of. */
    readonly hear: (hearer: Hearer) => Effect.Effect<void>
    /** Waits until all nodes have done what a change of before means to them, at most a second. */
    readonly heard: Effect.Effect<void>
  }
>()("server/platform/invalidation/Invalidation") {
  static readonly layer: Layer.Layer<Invalidation, never, PgClient.PgClient | SqlClient.SqlClient> =
    Layer.effect(
      Invalidation,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const hearers = new Set<Hearer>()
        const publish = (change: Change) =>
          Effect.asVoid(orDieWithTimeout(sql`select pg_notify(${channel}, ${encode(change)})`))
        const { heard, hearer } = makeRollCall(sql, publish)
        hearers.add(hearer)
        yield* listenForEver((change) =>
          Effect.forEach(hearers, (hearer) => hearer(change), { discard: true })
        )
        return Invalidation.of({
          publish,
          hear: (hearer) => Effect.sync(() => hearers.add(hearer)),
          heard
        })
      })
    )
}

/**
 * Asks all who listen to say that they have heard: messages come in the order of their commits, so
 * whoever has heard the question has heard what was told before it.
 */
const makeRollCall = (sql: SqlClient.SqlClient, publish: Hearer) => {
  const silent = new Map<string, { count: number; readonly all: Deferred.Deferred<void> }>()
  const heard = Effect.gen(function* () {
    const [{ count, id }] = yield* Effect.flatMap(
      sql`
        select gen_random_uuid()::text as id, count(*)::int as count from pg_stat_activity
        where datname = current_database() and query ilike ${`listen%${channel}%`}`,
      Schema.decodeUnknownEffect(Listeners)
    )
    const all = yield* Deferred.make<void>()
    silent.set(id, { count, all })
    const answers = Effect.andThen(publish({ kind: "asked", id }), Deferred.await(all))
    yield* Effect.ensuring(
      answers,
      Effect.sync(() => silent.delete(id))
    )
  }).pipe(Effect.timeoutOption(hearing), Effect.ignoreCause)
  const hearer: Hearer = ({ id, kind }) => {
    if (kind === "asked") return Effect.asVoid(Effect.forkDetach(publish({ kind: "heard", id })))
    const roll = kind === "heard" ? silent.get(id) : undefined
    if (roll === undefined || --roll.count > 0) return Effect.void
    return Effect.asVoid(Deferred.succeed(roll.all, undefined))
  }
  return { heard, hearer }
}

/** Listens in a session of its own, anew whenever that is lost; returns once it listens. */
const listenForEver = Effect.fnUntraced(function* (tell: Hearer) {
  const { config } = yield* PgClient.PgClient
  const listening = yield* Deferred.make<void>()
  const session = Effect.gen(function* () {
    // Made first, so closed last: on a frozen server the farewell of the channel would wait for ever,
    // on a closed connection there is none.
    const ears = yield* Effect.acquireRelease(Scope.make(), Scope.close)
    const connection = yield* PgConnection.make(config)
    const notifications = yield* Scope.provide(connection.listen(channel), ears)
    yield* Deferred.succeed(listening, undefined)
    yield* tell(everything)
    return yield* Effect.forever(
      Effect.flatMap(Queue.take(notifications), ({ payload }) =>
        Option.match(decode(payload), { onNone: () => tell(everything), onSome: tell })
      )
    )
  }).pipe(Effect.scoped)
  yield* session.pipe(
    Effect.tapError((error) => Effect.logWarning("Listening for changes again", error.message)),
    Effect.retry(Schedule.spaced(retryMillis)),
    Effect.forkScoped
  )
  yield* Deferred.await(listening)
})
