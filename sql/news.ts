/** Players' choices about news by email, with the time of the choice. */
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

const choiceOf = (sql: SqlClient.SqlClient) =>
  SqlSchema.findOneOption({
    Request: Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId }),
    Result: Schema.Struct({ optIn: Schema.Boolean, chosenAt: Schema.DateTimeUtcFromDate }),
    execute: ({ environmentId, playerId }) => sql`
      select news_opt_in as opt_in, news_chosen_at as chosen_at from players
      where environment_id = ${environmentId} and id = ${playerId}
        and news_opt_in is not null and news_chosen_at is not null`
  })

const updateChoice = (sql: SqlClient.SqlClient) =>
  SqlSchema.findOneOption({
    Request: Choice,
    Result: Schema.Struct({ id: PlayerId }),
    execute: ({ chosenAt, environmentId, optIn, playerId }) => sql`
      update players set news_opt_in = ${optIn}, news_chosen_at = ${chosenAt}
      where environment_id = ${environmentId} and id = ${playerId}
      returning id`
  })

/** Repository of the news columns of `players`. */
export class NewsRepository extends Context.Service<NewsRepository>()("sql/news/NewsRepository", {
  make: Effect.map(SqlClient.SqlClient, (sql) => {
    const choose = updateChoice(sql)
    const find = choiceOf(sql)
    return {
      /** Stores a choice; returns whether the player exists. */
      choose: (request: typeof Choice.Type) =>
        Effect.map(orDieWithTimeout(choose(request)), Option.isSome),
      /** The choice of a player; none before any. */
      find: (owner: Parameters<typeof find>[0]) => orDieWithTimeout(find(owner))
    }
  })
}) {
  static readonly layer = Layer.effect(NewsRepository, this.make)
}
