/** `svc deploy`, `svc rollback` and `svc deployments`. */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import type { EnvironmentName } from "#rpc/auth"
import type { Deployment } from "#rpc/hosting/api"
import { type AppFile, readAppFiles } from "./app-files.ts"
import { Failure } from "./failures.ts"
import { environmentFlag, switchFlag } from "./files.ts"
import {
  activateDeployment,
  createDeployment,
  finalizeDeployment,
  listDeployments,
  readHosting,
  uploadFile
} from "./hosting-service.ts"
import { makeProgress, printResult, stateStyle, styled, table } from "./output.ts"
import { describeRollback, messageFlag, rollbackFlags, versionToActivate } from "./rollback.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf, type Target } from "./target.ts"

const out = styled("stdout")

const uploadsAtOnce = 6
const listedMax = 100

const sizeText = (bytes: number): string => {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

const barCharacters = 24

const bar = (share: number): string => {
  const full = Math.round(share * barCharacters)
  return `[${"#".repeat(full)}${"-".repeat(barCharacters - full)}]`
}

/** Uploads files, and shows the progress on a terminal. */
const uploadAll = Effect.fnUntraced(function* (
  target: Target,
  files: ReadonlyArray<AppFile>,
  unchanged: number
) {
  const progress = yield* makeProgress
  const total = files.reduce((sum, { size }) => sum + size, 0)
  let sent = 0
  let done = 0
  const show = Effect.suspend(() =>
    progress(
      `${bar(total === 0 ? 1 : sent / total)} ${done} of ${files.length} files, ` +
        `${sizeText(sent)} of ${sizeText(total)}, ${unchanged} unchanged`
    )
  )
  const upload = (file: AppFile) =>
    Effect.andThen(
      uploadFile(target, file),
      Effect.suspend(() => {
        sent += file.size
        done += 1
        return show
      })
    )
  yield* show
  yield* Effect.forEach(files, upload, { concurrency: uploadsAtOnce, discard: true }).pipe(
    Effect.ensuring(progress(""))
  )
  return total
})

/** Adds that a second run continues. */
const withHint = (failure: Failure): Failure =>
  new Failure({
    exitCode: failure.exitCode,
    code: failure.code,
    message: failure.message,
    hints: [...(failure.hints ?? []), "Run the command again: it continues where this one stopped."]
  })

const deploy = Effect.fn(function* (options: {
  readonly folder: string
  readonly env: Option.Option<EnvironmentName>
  readonly message: Option.Option<string>
  readonly activate: boolean
}) {
  const { activate, env, folder } = options
  const target = yield* resolveTarget(env)
  const files = yield* readAppFiles(folder)
  const created = yield* createDeployment(target, files, Option.getOrUndefined(options.message))
  const missing = new Set(created.missing)
  // Several files may have the same content.
  const changed = new Map(
    files.flatMap((file) => (missing.has(file.sha256) ? [[file.sha256, file] as const] : []))
  )
  const unchanged = files.filter(({ sha256 }) => !missing.has(sha256)).length
  const uploadedBytes = yield* Effect.mapError(
    uploadAll(target, [...changed.values()], unchanged),
    withHint
  )
  const { deploymentId, live, url, version } = yield* finalizeDeployment(
    target,
    created.deploymentId,
    activate
  )
  const { urls } = yield* readHosting(target)
  const shown = (live ? urls[0] : undefined) ?? url
  const json = {
    environment: target.place.environment,
    deploymentId,
    version,
    live,
    files: files.length,
    uploadedFiles: changed.size,
    uploadedBytes,
    url: shown,
    versionUrl: url
  }
  yield* printResult(json, [
    `${live ? "Deployed" : "Uploaded"} version ${version} to ${nameOf(target)}: ` +
      `${files.length} files, ${changed.size} uploaded (${sizeText(uploadedBytes)}), ` +
      `${unchanged} unchanged.`,
    ...(shown === null ? [] : [out("cyan", shown)])
  ])
})

const deployCommand = Command.make(
  "deploy",
  {
    folder: Argument.String("dir").pipe(
      Argument.withDescription("The folder of the built app (default: dist)"),
      Argument.withDefault("dist")
    ),
    env: environmentFlag,
    message: messageFlag,
    activate: switchFlag("activate", "Make the version live; --no-activate only uploads it", true)
  },
  deploy
).pipe(
  Command.withDescription(
    "Upload the changed files of an app and make it live. .svcignore names files to leave out"
  ),
  Command.withExamples([
    { command: "svc deploy", description: "The folder dist, to development" },
    { command: 'svc deploy build --env production -m "New level"', description: "To production" }
  ])
)

const rollbackCommand = Command.make(
  "rollback",
  rollbackFlags,
  Effect.fn(function* ({ env, version: wanted }) {
    const target = yield* resolveTarget(env)
    const deployments = yield* listDeployments(target, listedMax)
    const ready = deployments.filter(({ status }) => status === "ready")
    const version = yield* versionToActivate(ready, wanted)
    const { deploymentId, live } = yield* activateDeployment(target, version)
    const { urls } = yield* readHosting(target)
    const url = urls[0] ?? null
    yield* printResult(
      { environment: target.place.environment, deploymentId, version, live, url },
      [
        `Version ${version} is live in ${nameOf(target)}.`,
        ...(url === null ? [] : [out("cyan", url)])
      ]
    )
  })
).pipe(describeRollback)

const stateOf = ({ live, status }: Deployment): string => (live ? "live" : status)

const deploymentsCommand = Command.make(
  "deployments",
  { env: environmentFlag },
  Effect.fn(function* ({ env }) {
    const target = yield* resolveTarget(env)
    const deployments = yield* listDeployments(target, listedMax)
    const rows = deployments.map((deployment) => [
      `${deployment.version}`,
      stateOf(deployment),
      deployment.createdAt.slice(0, 16).replace("T", " "),
      `${deployment.fileCount}`,
      sizeText(deployment.totalBytes),
      deployment.message ?? ""
    ])
    const headings = ["VERSION", "STATE", "CREATED (UTC)", "FILES", "SIZE", "MESSAGE"]
    yield* printResult(
      { environment: target.place.environment, deployments },
      table(headings, rows, stateStyle("live"))
    )
  })
).pipe(Command.withDescription("List the versions of the app, newest first"))

/** The commands of hosting. */
export const hostingCommands = [deployCommand, rollbackCommand, deploymentsCommand] as const
