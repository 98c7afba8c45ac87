/** Checks of this machine: packages of the game, the data directory, the database beside it. */
import { readFileSync } from "node:fs"
import { stat, statfs } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { type Check, diskCheck, failed, ok, warning } from "./doctor-checks.ts"
import { connects } from "./connects.ts"

const scope = "@player-backend"

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

/** The packages that the game in a folder has installed, with their versions. */
export const installedPackages = (folder: string): ReadonlyMap<string, string> => {
  const from = createRequire(join(folder, "package.json"))
  const found = ["client", "server", "testing"].flatMap((name) => {
    try {
      const file = from.resolve(`${scope}/${name}/package.json`)
      const { version } = Schema.decodeUnknownSync(Manifest)(readFileSync(file, "utf8"))
      return [[`${scope}/${name}`, version] as const]
    } catch {
      return []
    }
  })
  return new Map(found)
}

const othersMayRead = 0o077

const keyCheck = (file: string, mode: number): ReadonlyArray<Check> =>
  process.platform === "win32" || (mode & othersMayRead) === 0
    ? []
    : [warning("master key", `${file} can be read by others`, `chmod 600 ${file}`)]

const freeBytesOf = (directory: string) =>
  Effect.tryPromise(() => statfs(directory)).pipe(Effect.map(({ bavail, bsize }) => bavail * bsize))

/** Checks the data directory of a service on this machine. */
export const checkDataDirectory = Effect.fnUntraced(function* (directory: string) {
  const key = join(directory, "master.key")
  const mode = yield* Effect.option(Effect.tryPromise(() => stat(key)))
  const free = yield* Effect.option(freeBytesOf(directory))
  return [
    ...Option.match(free, {
      onNone: () => [],
      onSome: (bytes) => [diskCheck(directory, bytes)]
    }),
    ...Option.match(mode, { onNone: () => [], onSome: (found) => keyCheck(key, found.mode) })
  ]
})

const postgresPort = 5432

/** Whether a server listens at `DATABASE_URL`. */
export const checkDatabase = Effect.fnUntraced(function* (text: string) {
  const url = URL.parse(text)
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol)) {
    const remedy = "Set it to postgres://user:password@host:5432/database"
    return failed("database", "DATABASE_URL is no address of a Postgres", remedy)
  }
  const host = url.hostname.replace(/^\[|\]$/g, "")
  const port = url.port === "" ? postgresPort : Number(url.port)
  const place = `${url.hostname}:${port}`
  if (yield* connects({ host, port, isTls: false }))
    return ok("database", `${place} accepts connections`)
  const remedy = "Start the Postgres, or correct the host and port of DATABASE_URL."
  return failed("database", `${place} does not accept connections`, remedy)
})
