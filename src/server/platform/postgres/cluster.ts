/**
 * The database cluster on disk: its location and its creation.
 *
 * The directory `<data directory>/postgres` contains Postgres' own `data` and the superuser's
 * `password`. When the service is root and the user of Postgres cannot enter the data directory,
 * `postgres` is a symbolic link to a directory below {@link systemDirectory}.
 *
 * Invariant: `postgres` appears by a rename (or as a new link) when the cluster is complete. An
 * interrupted creation leaves a directory of another name, which is never used.
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

/** The superuser of the cluster. The service connects as this user. */
export const superuser = "svc"

/** A cluster on disk, with its password and the programs that run it. */
export interface Cluster {
  /** Directory of Postgres' data and the password, with symbolic links resolved. */
  readonly home: string
  /** Postgres' own data directory. */
  readonly data: string
  /** Directory of the programs. */
  readonly programs: string
  readonly password: Redacted.Redacted
  /** The user that Postgres runs as; absent when it is the user of the service. */
  readonly user?: User
}

/** Runs a Postgres program as the user of the cluster, in a directory that this user can enter. */
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

/** Opens the cluster of a data directory, or creates one. The caller must hold the lock. */
export const openCluster = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const entry = path.join(directory, "postgres")
  if (!(yield* fs.exists(entry))) {
    const target = yield* Effect.option(fs.readLink(entry))
    if (Option.isSome(target)) {
      return yield* new EmbeddedPostgresError({
        message:
          `Failed to open the database: ${entry} links to ${target.value}, which does not exist. ` +
          `Restore that directory, or delete ${entry} to start with an empty database.`
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
        `Failed to open ${data}: its owner, uid ${user.uid}, cannot enter it. Give that user access ` +
        "to each parent directory (chmod o+x), or set DATABASE_URL."
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

/** Creates the cluster in a temporary directory and renames it when it is complete. */
const createCluster = Effect.fnUntraced(function* (directory: string, entry: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const random = yield* SecureRandom.SecureRandom
  const user = isRoot ? yield* unprivilegedUser : undefined
  const programs = yield* findPrograms(user)
  const isInside = user === undefined || (yield* canEnter(directory, user))
  if (!isInside) yield* makeSystemDirectory
  // A new name each time, because an existing one may be the database of a checkout that has moved.
  const place = isInside ? entry : path.join(systemDirectory, `data-${yield* random.uuidV4()}`)
  const home = `${place}.new`
  const passwordFile = path.join(home, "password")
  const removeHome = fs.remove(home, { recursive: true, force: true })
  yield* removeHome
  // After a successful creation, the rename has left nothing to remove.
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
      // Postgres' own collation does not depend on the locales of the operating system.
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--locale=C",
      "--no-instructions"
    ],
    { home, data, programs, ...(user && { user }) }
  )
  yield* fs.rename(home, place)
  if (!isInside) yield* fs.symlink(place, entry)
}, Effect.scoped)
