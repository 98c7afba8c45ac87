/** Dead letters of Functions, for tests. */
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"

const Ids = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ id: Schema.String })))

/** Stores a message of the queue `JOBS` that has failed for good; returns its id. */
export const addDeadLetter = Effect.fnUntraced(function* (
  environmentId: string,
  body = '{"n":1}',
  contentType = "json"
) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    insert into function_deliveries
      (environment_id, kind, target, content_type, body, attempts, sent_at, failed_at)
    values (${environmentId}, 'message', 'JOBS', ${contentType}, ${Buffer.from(body)}, 5,
      '2026-01-01', '2026-01-02')
    returning id::text`
  const [row] = yield* Ids(rows)
  return row?.id ?? ""
}, Effect.orDie)

/** The same in the environment of a publishable key. */
export const addDeadLetterOf = Effect.fnUntraced(function* (
  publishableKey: string,
  ...content: [body?: string, contentType?: string]
) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* Ids(
    yield* sql`select environment_id as id from keys where plain = ${publishableKey}`
  )
  return yield* addDeadLetter(row?.id ?? "", ...content)
}, Effect.orDie)
