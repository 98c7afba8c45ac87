/** `svc functions queues`: messages and events that failed for good. */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { environmentFlag } from "./files.ts"
import { deleteDeadLetter, listDeadLetters, retryDeadLetter } from "./functions-service.ts"
import { printResult, table } from "./output.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf } from "./target.ts"

const shownCharacters = 60

/** The body on one line. */
const excerpt = (body: string): string => {
  const line = body.replace(/[\p{Cc}\s]+/gu, " ")
  return line.length > shownCharacters ? `${line.slice(0, shownCharacters)}...` : line
}

const deadCommand = Command.make(
  "dead",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("A queue or a hook (default: all)"),
      Argument.optional
    ),
    env: environmentFlag
  },
  Effect.fn(function* ({ env, name }) {
    const target = yield* resolveTarget(env)
    const deadLetters = yield* listDeadLetters(target, Option.getOrUndefined(name))
    const rows = deadLetters.map(({ attempts, body, failedAt, id, name: of }) => [
      id,
      of,
      failedAt.slice(0, 16),
      String(attempts),
      excerpt(body)
    ])
    const headings = ["ID", "NAME", "FAILED (UTC)", "ATTEMPTS", "BODY"]
    yield* printResult({ deadLetters }, table(headings, rows))
  })
).pipe(Command.withDescription("List what failed for good, newest first; --json has whole bodies"))

const idArgument = Argument.String("id").pipe(
  Argument.withDescription("The id that svc functions queues dead prints")
)

const retryCommand = Command.make(
  "retry",
  { id: idArgument, env: environmentFlag },
  Effect.fn(function* ({ env, id }) {
    const target = yield* resolveTarget(env)
    yield* retryDeadLetter(target, id)
    yield* printResult({ id }, [`${id} is delivered again in ${nameOf(target)}.`])
  })
).pipe(Command.withDescription("Deliver one again, as if it had just been sent"))

const deleteCommand = Command.make(
  "delete",
  { id: idArgument, env: environmentFlag },
  Effect.fn(function* ({ env, id }) {
    const target = yield* resolveTarget(env)
    yield* deleteDeadLetter(target, id)
    yield* printResult({ id }, [`Deleted ${id} in ${nameOf(target)}.`])
  })
).pipe(Command.withDescription("Delete one"))

export const queuesCommand = Command.make("queues").pipe(
  Command.withDescription("Messages and events that failed for good"),
  Command.withSubcommands([deadCommand, retryCommand, deleteCommand])
)
