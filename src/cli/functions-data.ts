/** `svc functions secrets` and `svc functions db`. */
import { Effect, Stdio, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { usageFailure } from "./failures.ts"
import { environmentFlag } from "./files.ts"
import { print, printJson, Json, note, printResult, table } from "./output.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf } from "./target.ts"
import { folderArgument } from "./functions-deploy.ts"
import { applyMigrations } from "./functions-migrations.ts"
import { deleteSecret, listSecrets, putSecret, query } from "./functions-service.ts"

const nameArgument = Argument.String("name").pipe(
  Argument.withDescription("The name: upper-case letters, digits and underscores")
)

const listCommand = Command.make(
  "list",
  { env: environmentFlag },
  Effect.fn(function* ({ env }) {
    const secrets = yield* listSecrets(yield* resolveTarget(env))
    const rows = secrets.map(({ name, updatedAt }) => [name, updatedAt.slice(0, 16)])
    yield* printResult({ secrets }, table(["NAME", "UPDATED (UTC)"], rows))
  })
).pipe(Command.withDescription("List the names of secrets"))

const setCommand = Command.make(
  "set",
  { name: nameArgument, env: environmentFlag },
  Effect.fn(function* ({ env, name }) {
    const target = yield* resolveTarget(env)
    const stdio = yield* Stdio.Stdio
    if (yield* stdio.stdinIsTerminal) yield* note(`Type the value of ${name}, then Ctrl-D:`)
    const text = yield* Effect.orDie(Stream.mkString(Stream.decodeText(stdio.stdin)))
    const value = text.replace(/\r?\n$/, "")
    if (value === "") return yield* usageFailure("The value on standard input is empty.")
    yield* putSecret(target, name, value)
    yield* printResult({ name }, [`Set ${name} in ${nameOf(target)}.`])
  })
).pipe(
  Command.withDescription("Set a secret to the text on standard input"),
  Command.withExamples([
    { command: "svc functions secrets set API_KEY < key.txt", description: "From a file" }
  ])
)

const deleteCommand = Command.make(
  "delete",
  { name: nameArgument, env: environmentFlag },
  Effect.fn(function* ({ env, name }) {
    const target = yield* resolveTarget(env)
    const known = yield* listSecrets(target)
    if (!known.some((secret) => secret.name === name)) {
      return yield* usageFailure(`There is no secret ${name}.`)
    }
    yield* deleteSecret(target, name)
    yield* printResult({ name }, [`Deleted ${name} in ${nameOf(target)}.`])
  })
).pipe(Command.withDescription("Delete a secret"))

export const secretsCommand = Command.make("secrets").pipe(
  Command.withDescription("Secrets of functions; nothing prints a value"),
  Command.withSubcommands([listCommand, setCommand, deleteCommand])
)

const bindingArgument = Argument.String("binding").pipe(
  Argument.withDescription("The name of the database in svc.functions.json")
)

const cellText = (value: unknown): string =>
  value === null ? "" : typeof value === "string" ? value : JSON.stringify(value)

const queryCommand = Command.make(
  "query",
  {
    binding: bindingArgument,
    sql: Argument.String("sql").pipe(Argument.withDescription("One statement of SQLite")),
    env: environmentFlag
  },
  Effect.fn(function* ({ binding, env, sql }) {
    const result = yield* query(yield* resolveTarget(env), binding, sql)
    if (yield* Json) return yield* printJson(JSON.stringify(result, null, 2))
    const { columns, rows, rowsAffected } = result
    if (columns.length === 0) return yield* print(`${rowsAffected} rows changed.`)
    const cells = rows.map((row) => row.map(cellText))
    yield* print(...table(columns, cells))
    if (result.truncated === true) {
      yield* note(`Only the first ${rows.length} rows: add limit and offset.`)
    }
  })
).pipe(Command.withDescription("Run one statement"))

const migrateCommand = Command.make(
  "migrate",
  { binding: bindingArgument, folder: folderArgument, env: environmentFlag },
  Effect.fn(function* ({ binding, env, folder }) {
    const target = yield* resolveTarget(env)
    const { applied, skipped } = yield* applyMigrations(target, folder, binding)
    yield* printResult({ binding, applied, skipped }, [
      `${applied.length} applied, ${skipped.length} were there before.`
    ])
  })
).pipe(Command.withDescription("Apply the .sql files of <dir>/migrations/<binding> once each"))

export const dbCommand = Command.make("db").pipe(
  Command.withDescription("Databases of functions"),
  Command.withSubcommands([queryCommand, migrateCommand])
)
