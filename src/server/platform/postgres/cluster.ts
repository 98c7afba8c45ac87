/**
 * The database cluster on disk: where it lies, and how it is created.
 *
 * It is `<data directory>/postgres`, holding Postgres' own `data` and the superuser's `password`.
 * When the service is root and the user that Postgres runs as cannot enter the data directory,
 * `postgres` is a symbolic link to a directory below {@link systemDirectory}.
 *
 * Invariant: `postgres` appears by a rename (or the making of the link) when the cluster is
 * complete. What an interrupted creation leaves has another name and is never used.
 */
import { Effect, FileSystem, Option, Path, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import {
  canEnter,
  EmbeddedPostgresError,
  findPrograms,
  isRoot,
  makeSystemDirectory,
  programEnvironment,
  run,
  systemDirectory,
  unprivilegedUser,
  type User
} from "./binaries.ts"

/** The superuser of the cluster, as whom the service connects. */
export const superuser = "svc"

/** A cluster on disk, with what it takes to run it. */
export interface Cluster {
  /** Directory of Postgres' data and the password, free of symbolic links. */
  readonly home: string
  /** Postgres' own data directory. */
  readonly data: string
  /** Directory of the programs. */
  readonly programs: string
  readonly password: Redacted.Redacted
  /** As whom Postgres runs; absent when it runs as the service does. */
  readonly user?: User
}

/** Runs a Postgres program as the right user, in a directory which that user may enter. */
export const runProgram = Effect.fnUntraced(function* (
  program: "initdb" | "pg_ctl",
  args: ReadonlyArray<string>,
  cluster: Omit<Cluster, "password">
) {
  const path = yield* Path.Path
  const { home: cwd, user } = cluster
  return yield* run(path.join(cluster.programs, program), args, {
    cwd,
    env: programEnvironment,
    ...(user && { user })
  })
})

/** The cluster of a data directory; created when there is none. The caller holds the lock. */
export const openCluster = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const entry = path.join(directory, "postgres")
  if (!(yield* fs.exists(entry))) {
    const target = yield* Effect.option(fs.readLink(entry))
    if (Option.isSome(target)) {
      return yield* new EmbeddedPostgresError({
        message:
          `${entry} says that the database is in ${target.value}, which is gone. Restore that ` +
          `directory, or delete ${entry} to start with an empty database.`
      })
    }
    yield* createCluster(directory, entry)
  }
  const home = yield* fs.realPath(entry)
  const data = path.join(home, "data")
  const user = isRoot ? yield* ownerOf(data) : undefined
  if (user !== undefined && !(yield* canEnter(home, user))) {
    return yield* new EmbeddedPostgresError({
      message:
        `${data} belongs to uid ${user.uid}, which may not enter it. Let that user pass through ` +
        "every directory above (chmod o+x), or set DATABASE_URL."
    })
  }
  const password = Redacted.make(yield* fs.readFileString(path.join(home, "password")))
  const programs = yield* findPrograms(user)
  return { home, data, programs, password, ...(user && { user }) } satisfies Cluster
})

const ownerOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const { gid, uid } = yield* fs.stat(file)
  return { uid: Option.getOrElse(uid, () => 0), gid: Option.getOrElse(gid, () => 0) }
})

/** Creates the cluster aside and moves it to its place when it is complete. */
const createCluster = Effect.fnUntraced(function* (directory: string, entry: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const random = yield* SecureRandom.SecureRandom
  const user = isRoot ? yield* unprivilegedUser : undefined
  const programs = yield* findPrograms(user)
  const inside = user === undefined || (yield* canEnter(directory, user))
  if (!inside) yield* makeSystemDirectory
  // A new name each time: what lies there may be the database of a checkout that has moved.
  const place = inside ? entry : path.join(systemDirectory, `data-${yield* random.uuidV4()}`)
  const home = `${place}.new`
  const passwordFile = path.join(home, "password")
  const removeHome = fs.remove(home, { recursive: true, force: true })
  yield* removeHome
  // Nothing is left to remove when the creation has succeeded.
  yield* Effect.addFinalizer(() => Effect.ignore(removeHome))
  yield* fs.makeDirectory(home, { mode: 0o700 })
  yield* fs.writeFileString(passwordFile, yield* random.uuidV4(), { mode: 0o600 })
  if (user !== undefined) {
    yield* Effect.forEach([home, passwordFile], (file) => fs.chown(file, user.uid, user.gid))
  }
  const data = path.join(home, "data")
  yield* runProgram(
    "initdb",
    [
      `--pgdata=${data}`,
      `--username=${superuser}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // Postgres' own collation: needs no locale of the operating system, and never changes with it.
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--locale=C",
      "--no-instructions"
    ],
    { home, data, programs, ...(user && { user }) }
  )
  yield* fs.rename(home, place)
  if (!inside) yield* fs.symlink(place, entry)
}, Effect.scoped)
