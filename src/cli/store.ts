/**
 * What the CLI remembers of its user, in the user's config directory and never in a repository: the
 * secret keys that `svc login` took (`credentials.json`, for the owner's eyes only), and which version
 * of a config a file was last seen against (`seen.json`).
 *
 * Keys stand under the service, then the project: developer sessions will stand beside the projects.
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

/** What was last seen of the config that a file stands for. */
const SyncState = Schema.Struct({
  /** The version in force when it was last pulled, pushed or compared. */
  version: Schema.Int,
  /** The digest of the file when it last was what is in force. */
  digest: Schema.optionalKey(Schema.String)
})
export type SyncState = typeof SyncState.Type

const SyncStates = Schema.Record(Schema.String, SyncState)

/** The most files whose sync state is stored; beyond it the least recently used one is removed. */
const syncStatesMax = 200

/** One environment of a project on a service. */
export interface KeyScope {
  readonly url: string
  readonly project: string
  readonly environment: EnvironmentName
}

const variable = (name: string) => Effect.orDie(Config.option(Config.String(name)))

/** Where a system keeps the settings of its users' programs, or where the user says. */
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
    /** Keeps a key, or forgets it. */
    readonly setKey: (place: KeyScope, key: Option.Option<string>) => Effect.Effect<void, Failure>
    readonly syncState: (name: string) => Effect.Effect<Option.Option<SyncState>, Failure>
    readonly setSyncState: (name: string, state: SyncState) => Effect.Effect<void, Failure>
    /** Where the keys are, to tell people. */
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

/** A file of the owner's: read as a whole, replaced as a whole, never seen half written. */
const jsonFile = Effect.fnUntraced(function* <A, E>(
  file: string,
  schema: Schema.Codec<A, E>,
  empty: A
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const Text = Schema.fromJsonString(schema, { space: 2 })
  const broken = usageFailure(`${file} is not what svc wrote.`, "Mend it, or delete it.")
  const unwritable = usageFailure(`${file} cannot be written.`)
  const read = Effect.gen(function* () {
    if (!(yield* fs.exists(file))) return empty
    return yield* Effect.flatMap(fs.readFileString(file), Schema.decodeEffect(Text))
  }).pipe(Effect.mapError(() => broken))
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
