/**
 * The target of a command: service, project, environment and key. `svc.link.json` names service and
 * project for a folder and its subfolders, without secrets. The key comes from, in this order:
 *
 * 1. `SVC_SECRET_KEY` with `SVC_URL`, for CI. Never with a link: a folder must not choose who gets the
 * key. 2. The key that `svc login` stored for the linked service and project. 3. `<data
 * dir>/dev-keys.json` of a service that was started here with `npm start`.
 */
import { Config, Effect, FileSystem, Option, Path, Redacted, Schema } from "effect"
import type { EnvironmentName } from "#rpc/auth"
import { exitCodes, Failure, usageFailure } from "./failures.ts"
import { Store } from "./store.ts"

/** The name of the file that links a folder. */
export const linkFile = "svc.link.json"

/** The link file: the service, and the project name for stored keys. */
export const Link = Schema.Struct({ url: Schema.String, project: Schema.String })
export type Link = typeof Link.Type

const Keys = Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })

/** The part of `dev-keys.json` that the CLI needs. */
const DevKeys = Schema.Struct({
  baseUrl: Schema.String,
  project: Schema.String,
  development: Keys,
  production: Keys
})

/** A key, and where it came from. */
export interface KeySource {
  readonly url: string
  readonly secretKey: Redacted.Redacted
  /** The source of the key, for messages. */
  readonly keyFrom: string
}

/** A key with the names beside it; none for a key from `SVC_SECRET_KEY`. */
export interface LabelledKey extends KeySource {
  readonly label: { readonly project: string; readonly environment: EnvironmentName } | undefined
}

/** An environment and its key, as the service describes it. `project` is the project's id. */
export interface Target extends KeySource {
  readonly place: { readonly project: string; readonly environment: EnvironmentName }
}

/** The display name of the target's environment. */
export const nameOf = ({ place }: Target): string => place.environment

const variable = (name: string) =>
  Effect.map(Effect.orDie(Config.option(Config.String(name))), Option.getOrUndefined)

/** Validates the address of a service and removes trailing slashes. */
export const serviceUrl = Effect.fnUntraced(function* (text: string) {
  const url = URL.parse(text)
  const http = url?.protocol === "http:" || url?.protocol === "https:"
  if (url === null || !http || url.username !== "" || url.search !== "" || url.hash !== "") {
    return yield* usageFailure(
      `${text} is not the address of a service. Expected a URL like https://play.example.com`
    )
  }
  return url.href.replace(/\/+$/, "")
})

/** Reads and decodes the nearest file of a name, in this folder or above. */
const nearest = Effect.fnUntraced(function* <A>(name: string, schema: Schema.Codec<A, unknown>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const Text = Schema.fromJsonString(schema)
  const look = (
    folder: string
  ): Effect.Effect<Option.Option<{ readonly file: string; readonly value: A }>, Failure> =>
    Effect.gen(function* () {
      const file = path.resolve(folder, name)
      if (yield* Effect.orElseSucceed(fs.exists(file), () => false)) {
        const value = yield* Effect.flatMap(
          fs.readFileString(file),
          Schema.decodeEffect(Text)
        ).pipe(
          Effect.mapError(() => usageFailure(`Failed to read ${file}: correct it, or delete it.`))
        )
        return Option.some({ file, value })
      }
      const parent = path.dirname(folder)
      return parent === folder ? Option.none() : yield* look(parent)
    })
  return yield* look(path.resolve("."))
})

/** The link of this folder. */
export const currentLink = Effect.map(
  nearest(linkFile, Link),
  Option.map(({ value }) => value)
)

const keysFile = "dev-keys.json"

const nearestKeys = Effect.gen(function* () {
  const path = yield* Path.Path
  const dataDir = (yield* variable("SVC_DATA_DIR")) ?? ".svc"
  return yield* nearest(path.join(dataDir, keysFile), DevKeys)
})

/** The demo project of a service that was started in this folder. */
export const localService = Effect.map(
  nearestKeys,
  Option.map(({ value }) => value)
)

/** The data directory of that service. */
export const localDataDirectory = Effect.gen(function* () {
  const path = yield* Path.Path
  return Option.map(yield* nearestKeys, ({ file }) => path.dirname(file))
})

/** The address in `SVC_URL`, if set. */
export const urlFromEnvironment = Effect.flatMap(variable("SVC_URL"), (url) =>
  url === undefined ? Effect.succeed(undefined) : serviceUrl(url)
)

/** The address that commands of this folder use; undefined if there is none. */
export const currentUrl = Effect.gen(function* () {
  const given = yield* urlFromEnvironment
  const link = Option.getOrUndefined(yield* currentLink)
  const here = Option.getOrUndefined(yield* localService)
  const url = given ?? link?.url ?? here?.baseUrl
  return url === undefined ? undefined : yield* serviceUrl(url)
})

const unlinked = usageFailure(
  "This folder is not linked to a service.",
  "svc link https://play.example.com   links it",
  "npm start                           starts a service on this machine, which svc finds",
  "SVC_URL and SVC_SECRET_KEY          set both in CI"
)

const urlMissing = usageFailure(
  "SVC_SECRET_KEY is set without SVC_URL: set SVC_URL to the address of the service."
)

const keyMissing = ({ project, url }: Link, environment: EnvironmentName) =>
  new Failure({
    exitCode: exitCodes.refused,
    code: "not_logged_in",
    message: `No key is stored for ${environment} of ${project} at ${url}.`,
    hints: [`svc login --env ${environment}   stores one`]
  })

/** Finds the key of an environment by its names, without asking the service. */
export const findKey = Effect.fnUntraced(function* (environment: EnvironmentName) {
  const store = yield* Store
  const given = yield* variable("SVC_SECRET_KEY")
  const givenUrl = yield* urlFromEnvironment
  if (given !== undefined) {
    if (givenUrl === undefined) return yield* urlMissing
    return labelledKey(givenUrl, given, "SVC_SECRET_KEY", undefined)
  }
  const link = Option.getOrUndefined(yield* currentLink)
  const url = givenUrl ?? link?.url
  const here = Option.getOrUndefined(yield* localService)
  const hereUrl = here === undefined ? undefined : yield* serviceUrl(here.baseUrl)
  const project = link?.project ?? here?.project
  if (url !== undefined && project !== undefined) {
    const key = yield* store.key({ url, project, environment })
    if (Option.isSome(key)) {
      return labelledKey(url, key.value, store.credentialsFile, { project, environment })
    }
  }
  if (here !== undefined && hereUrl !== undefined && (url ?? hereUrl) === hereUrl) {
    const { project } = here
    return labelledKey(hereUrl, here[environment].secretKey, keysFile, { project, environment })
  }
  if (url === undefined) return yield* unlinked
  return yield* keyMissing({ url, project: project ?? "default" }, environment)
})

const labelledKey = (
  url: string,
  key: string,
  keyFrom: string,
  label: LabelledKey["label"]
): LabelledKey => ({
  url,
  secretKey: Redacted.make(key),
  keyFrom,
  label
})
