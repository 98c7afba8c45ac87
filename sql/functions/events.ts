/**
 * Events for the hooks of Functions. They are stored by the statement that makes the change, so neither
 * happens without the other, and only where the live code exports the hook.
 */
import type { SqlClient, Statement } from "effect/sql"
import { functionDeliveries } from "#rpc/functions/limits"

type Hook = "onPlayerCreated" | "onRoomClosed" | "onStats"

/** A time of a column in ISO 8601. */
export const isoTime = (sql: SqlClient.SqlClient, column: string) =>
  sql.literal(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)

/**
 * An `insert` of events, as part of a larger statement. `rows` selects `environment_id`, `payload` (JSON)
 * and `at`. An environment with too many waiting events gets no more.
 */
export const insertEvents = (sql: SqlClient.SqlClient, hook: Hook, rows: Statement.Fragment) => sql`
  insert into function_deliveries (environment_id, kind, target, content_type, body, sent_at, due_at)
  select e.environment_id, 'event', ${sql.literal(`'${hook}'`)}, 'json',
    convert_to(e.payload::text, 'UTF8'), e.at, e.at
  from (${rows}) as e (environment_id, payload, at)
    join functions f on f.environment_id = e.environment_id
  where f.enabled and ${sql.literal(`'${hook}'`)} = any(f.hooks) and (
    select count(*) from (
      select from function_deliveries d
      where d.environment_id = f.environment_id and d.due_at is not null
      limit ${sql.literal(`${functionDeliveries.eventsMax}`)}) as waiting)
     < ${sql.literal(`${functionDeliveries.eventsMax}`)}`
