/** Config files on disk, and shared arguments of commands. */
import { Effect, FileSystem, Result } from "effect"
import { Argument, Flag } from "effect/cli"
import { EnvironmentName } from "#rpc/auth"
import { type ConfigText, parseConfig, validateConfig } from "./document.ts"
import { exitCodes, Failure, type LocatedIssue, usageFailure } from "./failures.ts"

/** The config file of a folder. */
export const defaultFile = "svc.config.json"

/** `[file]`. */
export const fileArgument = Argument.String("file").pipe(
  Argument.withDescription(`The config file (default: ${defaultFile})`),
  Argument.withDefault(defaultFile)
)

const environment = Flag.Literals("env", EnvironmentName.literals).pipe(Flag.withAlias("e"))

/** `--env` beside a stored key. */
export const storedEnvironmentFlag = environment.pipe(
  Flag.withDescription("The environment (default: development)"),
  Flag.withDefault("development")
)

/** `--env`. The service says which environment a key from SVC_SECRET_KEY opens. */
export const environmentFlag = environment.pipe(
  Flag.withDescription("The environment (default: development, or that of SVC_SECRET_KEY)"),
  Flag.optional
)

/** A flag that is on or off. */
export const switchFlag = (name: string, description: string, isOn = false) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(isOn))

/** The failure for a config file with problems. */
export const invalidConfig = (file: string, issues: ReadonlyArray<LocatedIssue>): Failure =>
  new Failure({
    exitCode: exitCodes.no,
    code: "invalid_config",
    message: `${file} has ${issues.length === 1 ? "a problem" : `${issues.length} problems`}.`,
    file,
    issues: issues.toSorted((a, b) => a.line - b.line || a.column - b.column)
  })

/** Reads a file; undefined if it does not exist. */
export const readText = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const unreadable = usageFailure(`Failed to read ${file}: check its permissions.`)
  return yield* Effect.mapError(
    Effect.flatMap(fs.exists(file), (there) =>
      there ? fs.readFileString(file) : Effect.succeed(undefined)
    ),
    () => unreadable
  )
})

/** Writes a file of the project. */
export const writeText = Effect.fnUntraced(function* (file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.mapError(fs.writeFileString(file, text), () =>
    usageFailure(`Failed to write ${file}: check its permissions.`)
  )
})

/** Reads and parses a config file. */
export const openConfig = Effect.fnUntraced(function* (file: string) {
  const text = yield* readText(file)
  if (text === undefined) {
    return yield* usageFailure(`${file} does not exist.`, "svc config pull   creates it")
  }
  const parsed = Result.mapError(parseConfig(text), (issue) => invalidConfig(file, [issue]))
  return yield* Effect.fromResult(parsed)
})

/** Reads, parses and validates a config file. */
export const openValid = Effect.fnUntraced(function* (file: string) {
  const text: ConfigText = yield* openConfig(file)
  const valid = Result.mapError(validateConfig(text), (issues) => invalidConfig(file, issues))
  return { ...text, ...(yield* Effect.fromResult(valid)) }
})
