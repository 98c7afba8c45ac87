/** The config file on disk, and the arguments that commands share. */
import { Effect, FileSystem, Result } from "effect"
import { Argument, Flag } from "effect/cli"
import { EnvironmentName } from "#rpc/auth"
import { type ConfigText, parseConfig, validateConfig } from "./document.ts"
import { exitCodes, Failure, type LocatedIssue, usageFailure } from "./failures.ts"

/** `[file]`. */
export const fileArgument = Argument.String("file").pipe(
  Argument.withDescription("The config file; svc.config.json when absent"),
  Argument.withDefault("svc.config.json")
)

/** `--env`. */
export const environmentFlag = Flag.Literals("env", EnvironmentName.literals).pipe(
  Flag.withAlias("e"),
  Flag.withDescription("The environment; development when absent"),
  Flag.withDefault("development")
)

/** `--force`. */
export const forceFlag = (description: string) =>
  Flag.Boolean("force").pipe(Flag.withDescription(description), Flag.withDefault(false))

/** A config file with problems. */
export const invalidConfig = (file: string, issues: ReadonlyArray<LocatedIssue>): Failure =>
  new Failure({
    exitCode: exitCodes.no,
    code: "invalid_config",
    message: `${file} has ${issues.length === 1 ? "a problem" : `${issues.length} problems`}.`,
    file,
    issues: issues.toSorted((a, b) => a.line - b.line || a.column - b.column)
  })

/** The text of a file, if there is one. */
export const readText = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const unreadable = usageFailure(`${file} cannot be read.`)
  return yield* Effect.mapError(
    Effect.flatMap(fs.exists(file), (there) =>
      there ? fs.readFileString(file) : Effect.succeed(undefined)
    ),
    () => unreadable
  )
})

/** Writes a file of the project's. */
export const writeText = Effect.fnUntraced(function* (file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.mapError(fs.writeFileString(file, text), () =>
    usageFailure(`${file} cannot be written.`)
  )
})

/** The config in a file. */
export const openConfig = Effect.fnUntraced(function* (file: string) {
  const text = yield* readText(file)
  if (text === undefined) {
    return yield* usageFailure(`There is no ${file}.`, "svc config pull   writes it")
  }
  const parsed = Result.mapError(parseConfig(text), (issue) => invalidConfig(file, [issue]))
  return yield* Effect.fromResult(parsed)
})

/** The config in a file, if the rules of the service hold for it. */
export const openValid = Effect.fnUntraced(function* (file: string) {
  const text: ConfigText = yield* openConfig(file)
  const valid = Result.mapError(validateConfig(text), (issues) => invalidConfig(file, issues))
  return { ...text, ...(yield* Effect.fromResult(valid)) }
})
