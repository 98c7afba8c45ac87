/** `svc backup` and `svc restore`, which start the program of the service that has the database's driver. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Json } from "./output.ts"
import { runProgram } from "./service-program.ts"

const program = () => new URL("../server/backup/main.ts", import.meta.url).href

const run = Effect.fnUntraced(function* (words: ReadonlyArray<string>) {
  yield* runProgram(program, [...words, ...((yield* Json) ? ["--json"] : [])])
})

const verifyCommand = Command.make(
  "verify",
  {
    folder: Argument.String("folder").pipe(Argument.withDescription("The folder of a backup")),
    database: Flag.String("database").pipe(
      Flag.withDescription(
        "Restore into a schema of this database, which is dropped at the end (default: a temporary Postgres)"
      ),
      Flag.optional
    )
  },
  ({ database, folder }) =>
    run([
      "verify",
      folder,
      ...Option.match(database, { onNone: () => [], onSome: (url) => ["--database", url] })
    ])
).pipe(
  Command.withDescription("Restore a backup into a scratch database, and compare it"),
  Command.withExamples([
    { command: "svc backup verify nightly", description: "Fails unless the backup is whole" }
  ])
)

const backupCommand = Command.make(
  "backup",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("A new folder (default: svc-backup- and the time)"),
      Argument.optional
    )
  },
  ({ folder }) => run(["save", ...Option.toArray(folder)])
).pipe(
  Command.withDescription(
    "Save the database, files of apps, data of functions and the master key, beside the running service"
  ),
  Command.withExamples([
    { command: "svc backup", description: "The service of this folder (SVC_DATA_DIR, or .svc)" },
    { command: "DATABASE_URL=postgres://... svc backup nightly", description: "Your own Postgres" }
  ]),
  Command.withSubcommands([verifyCommand])
)

const restoreCommand = Command.make(
  "restore",
  {
    folder: Argument.String("folder").pipe(Argument.withDescription("The folder of a backup"))
  },
  ({ folder }) => run(["restore", folder])
).pipe(
  Command.withDescription("Restore a backup into an empty service that does not run"),
  Command.withExamples([
    { command: "SVC_DATA_DIR=restored svc restore svc-backup-2026-11-23T04-00-00", description: "" }
  ])
)

export const backupCommands = [backupCommand, restoreCommand] as const
