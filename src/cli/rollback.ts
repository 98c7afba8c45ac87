/** Versions of apps and functions: their message, and which one a rollback makes live. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { exitCodes, Failure } from "./failures.ts"
import { environmentFlag } from "./files.ts"

interface Version {
  readonly version: number
  readonly live: boolean
}

/** `--message` of a deployment. */
export const messageFlag = Flag.String("message").pipe(
  Flag.withAlias("m"),
  Flag.withDescription("What is new, for the history"),
  Flag.optional
)

/** `[version] --env`. */
export const rollbackFlags = {
  version: Argument.Int("version").pipe(
    Argument.withDescription("The version to make live (default: the one before)"),
    Argument.optional
  ),
  env: environmentFlag
}

export const describeRollback = Command.withDescription(
  "Make the version before the live one live again, or any other"
)

const noVersion = (message: string) =>
  Effect.fail(new Failure({ exitCode: exitCodes.usage, code: "no_version", message }))

/** Returns the wanted version, or the one before the live one. `kept` has the newest first. */
export const versionToActivate = (
  kept: ReadonlyArray<Version>,
  wanted: Option.Option<number>
): Effect.Effect<number, Failure> => {
  if (Option.isSome(wanted)) {
    if (kept.some(({ version }) => version === wanted.value)) return Effect.succeed(wanted.value)
    const versions = kept.map(({ version }) => version).join(", ")
    return noVersion(`There is no version ${wanted.value}. Kept are: ${versions || "none"}`)
  }
  const live = kept.find((each) => each.live)
  const before = kept.find(({ version }) => live !== undefined && version < live.version)
  return before === undefined
    ? noVersion("There is no version before the live one.")
    : Effect.succeed(before.version)
}
