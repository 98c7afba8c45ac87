/**
 * Targets whose key was checked. A name beside a key (`--env`, a stored login, `dev-keys.json`) proves
 * nothing, so the CLI asks the service what the key opens, and refuses a key that opens something else.
 */
import { Config, Effect, Option, Redacted } from "effect"

import type { EnvironmentName } from "#rpc/auth"
import { KeyDescription } from "#rpc/projects/projects"
import { exitCodes, Failure } from "./failures.ts"
import { call } from "./service.ts"
import { findKey, type KeySource, localService, type Target } from "./target.ts"

/** The names beside a key. A project is compared if its name is the id of a project. */
interface Label {
  readonly environment?: EnvironmentName | undefined
  readonly project?: string | undefined
}

const mismatch = (message: string, ...hints: ReadonlyArray<string>) =>
  new Failure({ exitCode: exitCodes.refused, code: "wrong_key", message, hints })

/** Reads what a key opens. */
export const describeKey = (source: KeySource) => call(source, "GET /v1/key", KeyDescription)

/** Fails unless the key of `kind` opens what its label says. */
export const checkKey = Effect.fnUntraced(function* (
  { keyFrom, url }: KeySource,
  opens: KeyDescription,
  label: Label,
  kind: KeyDescription["kind"] = "secret"
) {
  const { environment, project } = opens
  const key = `The key ${opens.prefix}... from ${keyFrom}`
  if (opens.kind !== kind) return yield* mismatch(`${key} is ${opens.kind}, not ${kind}.`)
  if (label.environment !== undefined && label.environment !== environment) {
    return yield* mismatch(
      `${key} opens ${environment} of ${project.name}, not ${label.environment}. Nothing was changed.`,
      `--env ${environment}                      works with what this key opens`,
      `svc login --env ${label.environment}   stores the key of ${label.environment}`
    )
  }
  const isId = label.project?.startsWith("prj_") === true
  if (isId && label.project !== project.id) {
    return yield* mismatch(
      `${key} opens the project ${project.name} (${project.id}) at ${url}, not ${label.project}.`,
      "svc link   links this folder to another project"
    )
  }
})

/**
 * Resolves the environment and its key. Without a wanted environment a key from `SVC_SECRET_KEY` decides
 * which one it is; other keys are of development then.
 */
export const resolveTarget = Effect.fnUntraced(function* (wanted: Option.Option<EnvironmentName>) {
  const { label, ...source } = yield* findKey(Option.getOrElse(wanted, () => "development"))
  const opens = yield* describeKey(source)
  const environment = label?.environment ?? Option.getOrUndefined(wanted)
  yield* checkKey(source, opens, { environment, project: label?.project })
  const target: Target = {
    ...source,
    place: { project: opens.project.id, environment: opens.environment }
  }
  return target
})

/** The publishable key of the same environment, from `SVC_PUBLISHABLE_KEY` or the local service. */
export const publishableKeyFor = Effect.fnUntraced(function* (target: Target) {
  const { place, url } = target
  const given = yield* Effect.orDie(Config.option(Config.String("SVC_PUBLISHABLE_KEY")))
  // Nobody wants guests in production, so only a key that was named explicitly makes them there.
  const here = place.environment === "production" ? Option.none() : yield* localService
  const local = Option.filter(here, ({ baseUrl }) => baseUrl === url)
  const key = Option.orElse(given, () =>
    Option.map(local, ({ development }) => development.publishableKey)
  )
  if (Option.isNone(key)) return key
  const keyFrom = Option.isSome(given) ? "SVC_PUBLISHABLE_KEY" : "dev-keys.json"
  const source = { url, keyFrom, secretKey: Redacted.make(key.value) }
  yield* checkKey(source, yield* describeKey(source), place, "publishable")
  return key
})
