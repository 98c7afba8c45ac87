/** `svc functions kv` and `svc functions files`: entries of the stores of functions. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { resolveTarget } from "./checked-target.ts"
import { usageFailure } from "./failures.ts"
import { environmentFlag } from "./files.ts"
import { deleteEntries, type EntryKind, listEntries } from "./functions-service.ts"
import { note, printResult, table } from "./output.ts"
import { nameOf } from "./target.ts"

interface Words {
  readonly kind: EntryKind
  readonly description: string
  /** Name of an entry. */
  readonly one: string
}

const bindingArgument = Argument.String("binding").pipe(
  Argument.withDescription("The name of the binding in svc.functions.json")
)

const prefixFlag = (description: string) =>
  Flag.String("prefix").pipe(Flag.withDescription(description), Flag.optional)

const listCommand = ({ kind, one }: Words) =>
  Command.make(
    "list",
    {
      binding: bindingArgument,
      prefix: prefixFlag("Only names that begin with this text"),
      cursor: Flag.String("cursor").pipe(
        Flag.withDescription("The names after those of a list, which prints it"),
        Flag.optional
      ),
      env: environmentFlag
    },
    Effect.fn(function* ({ binding, cursor, env, prefix }) {
      const target = yield* resolveTarget(env)
      const query = { prefix: Option.getOrUndefined(prefix), cursor: Option.getOrUndefined(cursor) }
      const { entries, nextCursor } = yield* listEntries(target, kind, binding, query)
      const rows = entries.map(({ expiresAt, name, sizeBytes }) => [
        name,
        kind === "files" ? String(sizeBytes) : (expiresAt ?? "").slice(0, 16)
      ])
      const columns = ["NAME", kind === "files" ? "BYTES" : "EXPIRES (UTC)"]
      yield* printResult({ entries, nextCursor }, table(columns, rows))
      if (nextCursor !== null) {
        yield* note(`There are more: give a --prefix, or --cursor ${nextCursor}`)
      }
    })
  ).pipe(Command.withDescription(`List each ${one} by name`))

const deleteCommand = ({ kind, one }: Words) =>
  Command.make(
    "delete",
    {
      binding: bindingArgument,
      name: Argument.String("name").pipe(
        Argument.withDescription(`The name of one ${one}`),
        Argument.optional
      ),
      prefix: prefixFlag('All whose names begin with this text; "" deletes everything'),
      env: environmentFlag
    },
    Effect.fn(function* ({ binding, env, name, prefix }) {
      if (Option.isSome(name) === Option.isSome(prefix)) {
        return yield* usageFailure(`Give the name of a ${one}, or a --prefix.`)
      }
      const target = yield* resolveTarget(env)
      const query = { name: Option.getOrUndefined(name), prefix: Option.getOrUndefined(prefix) }
      const deleted = yield* deleteEntries(target, kind, binding, query)
      if (deleted === 0 && Option.isSome(name)) {
        return yield* usageFailure(`There is no ${one} ${name.value} in ${binding}.`)
      }
      yield* printResult({ binding, deleted }, [
        `Deleted ${deleted} from ${binding} in ${nameOf(target)}.`
      ])
    })
  ).pipe(
    Command.withDescription(`Delete one ${one}, or all with a prefix`),
    Command.withExamples([
      { command: `svc functions ${kind} delete NAME a`, description: "One" },
      { command: `svc functions ${kind} delete NAME --prefix logs/`, description: "Many" },
      { command: `svc functions ${kind} delete NAME -- -a`, description: "One that begins with -" }
    ])
  )

const storeCommand = (words: Words) =>
  Command.make(words.kind).pipe(
    Command.withDescription(words.description),
    Command.withSubcommands([listCommand(words), deleteCommand(words)])
  )

export const kvCommand = storeCommand({
  kind: "kv",
  description: "Keys of the key-value storage of functions",
  one: "key"
})

export const filesCommand = storeCommand({
  kind: "files",
  description: "Files of functions",
  one: "file"
})
