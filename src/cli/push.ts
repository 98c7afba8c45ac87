/** `svc config push`. */
import { Effect, Option, type Schema } from "effect"
import type { EnvironmentName } from "#rpc/auth"
import { changedPaths } from "#rpc/config-document/changes"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { memberPath } from "#rpc/config-document/paths"
import type { Issue } from "#rpc/errors/codes"
import { changeText } from "./change-text.ts"
import { withoutSchema } from "./document.ts"
import { exitCodes, Failure, type LocatedIssue } from "./failures.ts"
import { invalidConfig, openValid } from "./files.ts"
import { printResult, warn } from "./output.ts"
import {
  featureUnavailableIssue,
  pushConfig,
  type PushRefused,
  readConfig,
  readFeatures
} from "./service.ts"
import { digestOf, lastSyncState, remember } from "./sync-state.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf, type Target } from "./target.ts"

interface PushOptions {
  readonly file: string
  readonly env: Option.Option<EnvironmentName>
  readonly dryRun: boolean
  readonly force: boolean
}

const indented = (document: Schema.Json, changed: ReadonlyArray<string>) =>
  changed.map((path) => `  ${changeText(document, path)}`)

/** The config changed since the user last saw it. The hints list what a push would undo. */
const conflict = (
  env: EnvironmentName,
  file: string,
  seen: number,
  current: number,
  changed: ReadonlyArray<string>
) =>
  new Failure({
    exitCode: exitCodes.no,
    code: "config_conflict",
    message:
      `The config of ${env} has changed: the current version is ${current}, you last saw ${seen}. ` +
      "Nothing was pushed. A push of this file would change:",
    hints: [
      ...changed,
      "",
      `svc config diff ${file} --env ${env}           shows the difference and allows a push`,
      `svc config pull ${file} --env ${env} --force   overwrites the file`,
      `svc config push ${file} --env ${env} --force   overwrites the config`
    ]
  })

const refusalOf = (file: string, place: (issue: Issue) => LocatedIssue, error: PushRefused) => {
  const issues = error.problems.map(place)
  if (issues.length > 0) return invalidConfig(file, issues)
  const { code, message } = error
  return new Failure({ exitCode: exitCodes.no, code, message })
}

/**
 * Features that the config enables and the deployment does not offer. Older services report them only
 * on push.
 */
const unavailableFeatures = Effect.fnUntraced(function* (
  target: Target,
  { features }: EnvironmentConfig
) {
  const known = yield* Effect.orElseSucceed(readFeatures(target), () => [])
  const on = new Set(Object.entries(features).flatMap(([name, on]) => (on ? [name] : [])))
  return known
    .filter(({ key, offered }) => on.has(key) && !offered)
    .map(({ key }) => featureUnavailableIssue(memberPath("features", key)))
})

export const push = Effect.fn(function* (options: PushOptions) {
  const { dryRun, env, file, force } = options
  const { config, document, place, warnings } = yield* openValid(file)
  const target = yield* resolveTarget(env)
  const name = nameOf(target)
  const current = yield* readConfig(target)
  const wanted = withoutSchema(document)
  const planned = changedPaths(withoutSchema(current.document), wanted)
  const seen = (yield* lastSyncState(target, file))?.version ?? current.version
  yield* warn(file, warnings)

  const common = { environment: target.place.environment, warnings }
  const at = (version: number) => ({ version, digest: digestOf(document) })
  if (planned.length === 0) {
    if (!dryRun) yield* remember(target, file, at(current.version))
    return yield* printResult({ ...common, dryRun, configVersion: current.version, changed: [] }, [
      `Nothing to push: ${file} is up to date with ${name} (version ${current.version}).`
    ])
  }
  if (!force && seen !== current.version) {
    return yield* conflict(target.place.environment, file, seen, current.version, planned)
  }
  if (dryRun) {
    const refused = yield* unavailableFeatures(target, config)
    if (refused.length > 0) return yield* invalidConfig(file, refused.map(place))
    const json = { ...common, dryRun, configVersion: current.version, changed: planned }
    return yield* printResult(json, [
      `A push would change in ${name} (version ${current.version}):`,
      ...indented(wanted, planned)
    ])
  }
  const pushed = yield* pushConfig(target, wanted, force ? undefined : seen).pipe(
    Effect.catchTag("PushRefused", (error) =>
      Effect.fail(
        error.currentVersion === undefined
          ? refusalOf(file, place, error)
          : conflict(target.place.environment, file, seen, error.currentVersion, planned)
      )
    )
  )
  yield* remember(target, file, at(pushed.configVersion))
  const shownWarnings = new Set(warnings.map(({ message, path }) => `${path}: ${message}`))
  const newWarnings = pushed.warnings.filter(
    ({ message, path }) => !shownWarnings.has(`${path}: ${message}`)
  )
  yield* warn(file, newWarnings.map(place))
  yield* printResult({ ...common, dryRun, ...pushed, warnings: pushed.warnings.map(place) }, [
    `Pushed ${file} to ${name}: the current version is ${pushed.configVersion}. Changed:`,
    ...indented(wanted, pushed.changed)
  ])
})
