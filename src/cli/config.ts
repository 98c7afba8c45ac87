/** `svc config`: works on the config of an environment as a file, `svc.config.json`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { changedPaths } from "#rpc/config-document/changes"
import { configJsonSchemaText } from "#rpc/config-document/json-schema"
import { diffLines } from "#rpc/config-document/diff"
import { withoutSchema } from "./document.ts"
import { Exit, exitCodes } from "./failures.ts"
import { environmentFlag, fileArgument, openConfig, openValid, switchFlag } from "./files.ts"
import { printJson, printResult, Json, styled, warn } from "./output.ts"
import { pull } from "./pull.ts"
import { push } from "./push.ts"
import { readConfig } from "./service.ts"
import { lastSyncState, remember } from "./sync-state.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf } from "./target.ts"

const out = styled("stdout")

const pullCommand = Command.make(
  "pull",
  {
    file: fileArgument,
    env: environmentFlag,
    force: switchFlag("force", "Overwrite edits of the file that were never pushed")
  },
  pull
).pipe(
  Command.withDescription(
    "Write the current config to a file, and its JSON Schema for editors beside it"
  ),
  Command.withExamples([
    { command: "svc config pull", description: "Into svc.config.json, from development" },
    { command: "svc config pull - --env production", description: "To standard output" }
  ])
)

const pushCommand = Command.make(
  "push",
  {
    file: fileArgument,
    env: environmentFlag,
    dryRun: switchFlag("dry-run", "Show what would change, without changing it"),
    force: switchFlag("force", "Overwrite changes made since your last pull, diff or push")
  },
  push
).pipe(
  Command.withDescription(
    "Validate a file and make it the current config. Fails if somebody changed the config since your " +
      "last pull, diff or push"
  ),
  Command.withExamples([
    { command: "svc config push --dry-run", description: "Show what would change in development" },
    { command: "svc config push --env production", description: "Push to production" }
  ])
)

const paint = (line: string): string => {
  if (line.startsWith("---") || line.startsWith("+++")) return out("bold", line)
  if (line.startsWith("@@")) return out("cyan", line)
  if (line.startsWith("+")) return out("green", line)
  return line.startsWith("-") ? out("red", line) : line
}

const diffCommand = Command.make(
  "diff",
  {
    file: fileArgument,
    env: environmentFlag,
    exitCode: switchFlag("exit-code", "Exit with 1 when there are differences, as git diff does")
  },
  Effect.fn(function* ({ env, exitCode, file }) {
    const { document } = yield* openConfig(file)
    const target = yield* resolveTarget(env)
    const current = yield* readConfig(target)
    const before = withoutSchema(current.document)
    const after = withoutSchema(document)
    const changed = changedPaths(before, after)
    const names = {
      before: `current (${nameOf(target)}, version ${current.version})`,
      after: file
    }
    const lines = diffLines(
      { name: names.before, document: before },
      { name: names.after, document: after }
    )
    yield* remember(target, file, {
      ...(yield* lastSyncState(target, file)),
      version: current.version
    })
    yield* printResult(
      {
        environment: target.place.environment,
        configVersion: current.version,
        different: changed.length > 0,
        changed
      },
      changed.length === 0 ? [] : lines.map(paint)
    )
    if (exitCode && changed.length > 0) return yield* new Exit({ exitCode: exitCodes.no })
  })
).pipe(
  Command.withDescription(
    "Compare the current config with a file: a push would add + lines and remove - lines"
  ),
  Command.withExamples([
    {
      command: "svc config diff --env production --exit-code",
      description: "Fail in CI when production differs from the repository"
    }
  ])
)

const validateCommand = Command.make(
  "validate",
  { file: fileArgument },
  Effect.fn(function* ({ file }) {
    const checked = yield* Effect.result(openValid(file))
    if (checked._tag === "Failure") {
      const { exitCode, issues } = checked.failure
      if (issues === undefined || !(yield* Json)) return yield* checked.failure
      yield* printResult({ valid: false, file, issues, warnings: [] }, [])
      return yield* new Exit({ exitCode })
    }
    const { warnings } = checked.success
    yield* warn(file, warnings)
    yield* printResult({ valid: true, file, issues: [], warnings }, [`${file} is valid.`])
  })
).pipe(
  Command.withDescription("Validate a file without the service: lists every problem with its line")
)

const schemaCommand = Command.make("schema", {}, () =>
  printJson(configJsonSchemaText().trimEnd())
).pipe(Command.withDescription("Print the JSON Schema of the config file"))

/** `svc config`. */
export const configCommand = Command.make("config").pipe(
  Command.withDescription("Pull, push, compare and validate the config of an environment"),
  Command.withSubcommands([pullCommand, pushCommand, diffCommand, validateCommand, schemaCommand])
)
