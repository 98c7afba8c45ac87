/** Whether players want news, and since when they say so (decisions 3.2.14). */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Choice = Schema.Struct({
  environmentId: EnvironmentId,
  playerId: PlayerId,
  optIn: Schema.Boolean,
  chosenAt: Schema.DateTimeUtcFromDate
})

const choice = (sql: SqlClient.SqlClient) =>
  SqlSchema.findOneOption({
    Request: Choice,
    Result: Schema.Struct({ id: PlayerId }),
    execute: ({ chosenAt, environmentId, optIn, playerId }) => sql`
      update players set news_opt_in = ${optIn}, news_chosen_at = ${chosenAt}
      where environment_id = ${environmentId} and id = ${playerId}
      returning id`
  })

/** The choices of players. */
export class NewsRepository extends Context.Service<NewsRepository>()("sql/news/NewsRepository", {
  make: Effect.map(SqlClient.SqlClient, (sql) => {
    const choose = choice(sql)
    return {
      /** Whether there is such a player. */
      choose: (request: typeof Choice.Type) =>
        Effect.map(orDieWithTimeout(choose(request)), Option.isSome)
    }
  })
}) {
  static readonly layer = Layer.effect(NewsRepository, this.make)
}
