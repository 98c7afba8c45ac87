/** `svc functions deploy` and `svc functions rollback`. */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { exitCodes, Failure } from "./failures.ts"
import { environmentFlag, switchFlag } from "./files.ts"
import { note, printResult, styled } from "./output.ts"
import { describeRollback, messageFlag, rollbackFlags, versionToActivate } from "./rollback.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf, type Target } from "./target.ts"
import { readDeployment } from "./functions-project.ts"
import { activate, deploy, enable, listDeployments, readStatus } from "./functions-service.ts"

const out = styled("stdout")

/** `[dir]`. */
export const folderArgument = Argument.String("dir").pipe(
  Argument.withDescription("The folder of the functions (default: functions)"),
  Argument.withDefault("functions")
)

const notEnabled = (target: Target) =>
  new Failure({
    exitCode: exitCodes.usage,
    code: "feature_disabled",
    message: `Functions are turned off in ${nameOf(target)}.`,
    hints: ["svc functions deploy --enable   turns them on"]
  })

/** Bundles a folder and makes it live. */
export const deployFolder = Effect.fnUntraced(function* (
  target: Target,
  folder: string,
  options: { readonly enable: boolean; readonly message?: string }
) {
  const deployment = yield* readDeployment(folder, options.message)
  const { enabled } = yield* readStatus(target)
  if (!enabled) {
    if (!options.enable) return yield* notEnabled(target)
    yield* enable(target)
    yield* note(`Functions are on in ${nameOf(target)}.`)
  }
  return yield* deploy(target, deployment)
})

export const deployCommand = Command.make(
  "deploy",
  {
    folder: folderArgument,
    env: environmentFlag,
    message: messageFlag,
    enable: switchFlag("enable", "Turn Functions on first")
  },
  Effect.fn(function* (options) {
    const target = yield* resolveTarget(options.env)
    const message = Option.getOrUndefined(options.message)
    const {
      unsetSecrets = [],
      url,
      version
    } = yield* deployFolder(target, options.folder, {
      enable: options.enable,
      ...(message === undefined ? {} : { message })
    })
    for (const name of unsetSecrets) {
      yield* note(`The secret ${name} is not set: svc functions secrets set ${name}`)
    }
    yield* printResult({ environment: target.place.environment, version, unsetSecrets, url }, [
      `Version ${version} is live in ${nameOf(target)}.`,
      out("cyan", url)
    ])
  })
).pipe(Command.withDescription("Bundle a folder of TypeScript and make it live"))

export const rollbackCommand = Command.make(
  "rollback",
  rollbackFlags,
  Effect.fn(function* ({ env, version: wanted }) {
    const target = yield* resolveTarget(env)
    const version = yield* versionToActivate(yield* listDeployments(target), wanted)
    const { url } = yield* activate(target, version)
    yield* printResult({ environment: target.place.environment, version, url }, [
      `Version ${version} is live in ${nameOf(target)}.`
    ])
  })
).pipe(describeRollback)
