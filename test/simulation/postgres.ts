/** Real databases for simulated clusters: one for each life that is played at a time. */
import { Context, Effect, type Exit, Layer, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { RoomRows } from "#sql/rooms"
import { cloneDatabase } from "#src/testing/database"
import type { RealDatabase } from "./database.ts"

const services = (url: Redacted.Redacted) =>
  RoomRows.layer.pipe(Layer.provideMerge(poolLayer({ url, connections: 1 })))

/** A database of its own, with statements carried out one after the other. */
export const openDatabase = Effect.fnUntraced(function* (
  server: Redacted.Redacted
): Effect.fn.Return<RealDatabase, never, Scope.Scope> {
  const url = yield* Effect.orDie(cloneDatabase(server))
  const context = yield* Layer.build(services(url))
  const sql = Context.get(context, SqlClient.SqlClient)
  let last: Promise<unknown> = Promise.resolve()
  const run = <A, E>(effect: Effect.Effect<A, E>): Promise<Exit.Exit<A, E>> => {
    const next = last.then(() => Effect.runPromiseExit(effect))
    last = next
    return next
  }
  const ids = sql<{ readonly id: string }>`select id from rooms`
  return {
    rows: Context.get(context, RoomRows),
    run,
    clear: async () => {
      await run(
        Effect.andThen(sql`truncate rooms`, sql`alter sequence entity_epochs restart with 1`)
      )
    },
    roomIds: async () => {
      const exit = await run(ids)
      return exit._tag === "Success" ? exit.value.map(({ id }) => id) : ["(the database fails)"]
    }
  }
})
