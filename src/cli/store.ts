/**
 * Files of the CLI in the user's config directory, outside any repository. They are the secret keys
 * of `svc login` (`credentials.json`, readable only by the owner), and the sync state of config
 * files (`seen.json`).
 *
 * Keys are stored by service and project, so that developer sessions can be added beside the
 * projects.
 */
import { homedir } from "node:os"
import { Config, Context, Effect, FileSystem, Layer, Option, Path, Schema } from "effect"
import { EnvironmentName } from "#rpc/auth"
import { usageFailure, type Failure } from "./failures.ts"

const Credentials = Schema.Struct({
  services: Schema.Record(
    Schema.String,
    Schema.Struct({
      projects: Schema.Record(
        Schema.String,
        Schema.Record(
          EnvironmentName,
          Schema.optionalKey(Schema.Struct({ secretKey: Schema.String }))
        )
      )
    })
  )
})
type Credentials = typeof Credentials.Type

/** The last known state of a config file against the service. */
const SyncState = Schema.Struct({
  /** The current version at the last pull, push or diff. */
  version: Schema.Int,
  /** The digest of the file when it last equalled the current config. */
  digest: Schema.optionalKey(Schema.String)
})
export type SyncState = typeof SyncState.Type

const SyncStates = Schema.Record(Schema.String, SyncState)

/**
 * Maximum number of files whose sync state is stored; beyond it the store removes the least
 * recently used one.
 */
const syncStatesMax = 200

/** One environment of a project on a service. */
export interface KeyScope {
  readonly url: string
  readonly project: string
  readonly environment: EnvironmentName
}

const variable = (name: string) => Effect.orDie(Config.option(Config.String(name)))

/** The config directory: `SVC_CONFIG_DIR`, or the system's default. */
const directory = Effect.gen(function* () {
  const path = yield* Path.Path
  const own = yield* variable("SVC_CONFIG_DIR")
  if (Option.isSome(own)) return own.value
  const [xdg, windows] = yield* Effect.all([variable("XDG_CONFIG_HOME"), variable("APPDATA")])
  const parent = Option.getOrElse(Option.firstSomeOf([xdg, windows]), () =>
    path.join(homedir(), ".config")
  )
  return path.join(parent, "svc")
})

/** The user's own files. */
export class Store extends Context.Service<
  Store,
  {
    readonly key: (place: KeyScope) => Effect.Effect<Option.Option<string>, Failure>
    /** Stores a key, or deletes it. */
    readonly setKey: (place: KeyScope, key: Option.Option<string>) => Effect.Effect<void, Failure>
    readonly syncState: (name: string) => Effect.Effect<Option.Option<SyncState>, Failure>
    readonly setSyncState: (name: string, state: SyncState) => Effect.Effect<void, Failure>
    /** The path of the keys, for messages. */
    readonly credentialsFile: string
  }
>()("cli/store/Store") {
  static readonly layer = Layer.effect(
    Store,
    Effect.gen(function* () {
      const path = yield* Path.Path
      const folder = yield* directory
      const credentials = yield* jsonFile(path.join(folder, "credentials.json"), Credentials, {
        services: {}
      })
      const syncStates = yield* jsonFile(path.join(folder, "seen.json"), SyncStates, {})
      return Store.of({
        credentialsFile: path.join(folder, "credentials.json"),
        key: (place) => Effect.map(credentials.read, keyOf(place)),
        setKey: (place, key) => credentials.change((all) => withKey(all, place, key)),
        syncState: (name) =>
          Effect.map(syncStates.read, (all) =>
            Object.hasOwn(all, name) ? Option.fromUndefinedOr(all[name]) : Option.none()
          ),
        setSyncState: (name, state) =>
          syncStates.change(({ [name]: _, ...others }) =>
            Object.fromEntries([...Object.entries(others), [name, state]].slice(-syncStatesMax))
          )
      })
    })
  )
}

const keyOf =
  ({ environment, project, url }: KeyScope) =>
  ({ services }: Credentials) =>
    Option.fromUndefinedOr(services[url]?.projects[project]?.[environment]?.secretKey)

const withKey = (
  { services }: Credentials,
  { environment, project, url }: KeyScope,
  key: Option.Option<string>
): Credentials => {
  const { projects } = services[url] ?? { projects: {} }
  const { [environment]: _, ...others } = projects[project] ?? {}
  const keys = Option.match(key, {
    onNone: () => others,
    onSome: (secretKey) => ({ ...others, [environment]: { secretKey } })
  })
  return { services: { ...services, [url]: { projects: { ...projects, [project]: keys } } } }
}

/** A JSON file that is read whole and replaced atomically. */
const jsonFile = Effect.fnUntraced(function* <A, E>(
  file: string,
  schema: Schema.Codec<A, E>,
  empty: A
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const Text = Schema.fromJsonString(schema, { space: 2 })
  const malformed = usageFailure(`Failed to parse ${file}.`, "Correct it, or delete it.")
  const unwritable = usageFailure(`Failed to write ${file}: check its permissions.`)
  const read = Effect.gen(function* () {
    if (!(yield* fs.exists(file))) return empty
    return yield* Effect.flatMap(fs.readFileString(file), Schema.decodeEffect(Text))
  }).pipe(Effect.mapError(() => malformed))
  const write = Effect.fnUntraced(
    function* (value: A) {
      const draft = `${file}.new`
      yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
      yield* fs.remove(draft, { force: true })
      const text = yield* Schema.encodeEffect(Text)(value)
      yield* fs.writeFileString(draft, `${text}\n`, { mode: 0o600, flag: "wx" })
      yield* fs.rename(draft, file)
    },
    Effect.mapError(() => unwritable)
  )
  return { read, change: (f: (value: A) => A) => Effect.flatMap(read, (value) => write(f(value))) }
})
