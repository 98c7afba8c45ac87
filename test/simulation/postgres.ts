/** Real databases for simulated clusters: one for each simulation that runs at a time. */
import { Context, Effect, type Exit, Layer, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { ChannelRepository } from "#sql/channels"
import { poolLayer } from "#sql/database"
import { RoomRepository } from "#sql/rooms"
import { cloneDatabase } from "#testing/database"
import type { RealDatabase } from "./database.ts"
import { environmentId } from "./environment.ts"

const services = (url: Redacted.Redacted) =>
  Layer.mergeAll(RoomRepository.layer, ChannelRepository.layer).pipe(
    Layer.provideMerge(poolLayer({ url, connections: 1 }))
  )

/** A separate database that runs one statement at a time. */
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
  yield* Effect.orDie(sql`
    with project as (
      insert into projects (id, name, slug, created_at) values ('p', 'p', 'p', now()) returning id
    )
    insert into environments (id, project_id, name, created_at)
    select ${environmentId}, id, 'production', now() from project`)
  // TRUNCATE takes longer than deleting these few rows.
  const emptied = Effect.all([sql`delete from rooms`, sql`delete from rooms_begun`])
  const ids = sql<{ readonly id: string }>`select id from rooms`
  const names = sql<{ readonly name: string }>`select name from channels order by name`
  return {
    rows: Context.get(context, RoomRepository),
    channelRows: Context.get(context, ChannelRepository),
    sql,
    run,
    crash: async () => {
      await run(emptied)
    },
    clear: async () => {
      await run(
        Effect.all([
          emptied,
          sql`delete from channels`,
          sql`alter sequence entity_epochs restart with 1`
        ])
      )
    },
    roomIds: async () => {
      const exit = await run(ids)
      return exit._tag === "Success" ? exit.value.map(({ id }) => id) : ["(the database fails)"]
    },
    channelNames: async () => {
      const exit = await run(names)
      return exit._tag === "Success" ? exit.value.map(({ name }) => name) : ["(the database fails)"]
    }
  }
})
