/** Dead letters of Functions: messages of queues, and events for hooks, that the service has given up. */
import { Schema } from "effect"
import { PageLimit } from "../pages.ts"
import { Timestamp } from "../text.ts"
import { functionDeliveries } from "./limits.ts"

export const DeadLetter = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literals(["message", "event"]),
  name: Schema.String,
  contentType: Schema.Literals(["json", "text", "bytes", "v8"]),
  encoding: Schema.Literals(["utf8", "base64"]),
  body: Schema.String,
  attempts: Schema.Int,
  sentAt: Timestamp,
  failedAt: Timestamp
}).annotate({
  identifier: "FunctionsDeadLetter",
  description:
    "A message of a queue, or an event for a hook, that failed for good. `name` is the queue or the hook. " +
    "`body` is text for the content types `json` and `text`, else base64; `encoding` says which."
})
export type DeadLetter = typeof DeadLetter.Type

export const DeadLetterPage = Schema.Struct({
  deadLetters: Schema.Array(DeadLetter),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "FunctionsDeadLetterPage",
  description: `Dead letters, newest first. They are kept for ${functionDeliveries.deadDays} days.`
})

/** The `id` of a dead letter. */
export const DeadLetterId = Schema.Struct({ id: Schema.String }).annotate({
  identifier: "FunctionsDeadLetterId",
  description: "The dead letter that was retried or deleted."
})

/** Cursor of a page: the id of the last dead letter. */
const Cursor = Schema.String.check(
  Schema.isPattern(/^\d{1,18}$/, { message: "Expected the nextCursor of a previous response" })
)

export const deadLetterQuery = {
  name: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[A-Za-z][A-Za-z0-9_]{0,63}$/, {
        message: "Expected the name of a queue or of a hook"
      })
    )
  ),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(Cursor)
}
