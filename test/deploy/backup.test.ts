/**
 * Runs the commands of `docs/operations/backup.md`: back up, delete, restore, compare. Covers a copy of the
 * stopped embedded database, and `pg_dump` of an external one.
 * @module-tag long
 */
import { execFile } from "node:child_process"
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "#testing/players"
import { startRunner } from "#testing/runners"
import { needsPrograms, programs, runClient, startServer } from "../support/debian-postgres.ts"
import { targetOf } from "../support/runner-target.ts"
import { masterKeyOf } from "../support/master-keys.ts"
import { ok, play, readAll } from "../support/restorable-data.ts"

const temporaryDirectory = (prefix: string) =>
  Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), prefix))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )

const execute = promisify(execFile)
const modules = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url))

const masterKey = masterKeyOf(5)

/** Writes data, runs `loseAndRestore` on the database, and checks that all data is back. */
const assertRestores = Effect.fnUntraced(function* (
  options: Parameters<typeof startRunner>[0],
  loseAndRestore: Effect.Effect<unknown>
) {
  const { before, headers, player } = yield* Effect.gen(function* () {
    const runner = yield* startRunner(options)
    const target = yield* targetOf(options.dataDir, runner.url)
    const played = yield* play(target)
    const before = yield* readAll(target, played.headers)
    yield* runner.stop
    return { ...played, before }
  }).pipe(Effect.scoped)
  yield* loseAndRestore
  const runner = yield* startRunner(options)
  const target = yield* targetOf(options.dataDir, runner.url)
  assert.deepStrictEqual(yield* readAll(target, headers), before)
  const { refreshToken } = player
  const key = { "x-svc-key": target.publishableKey }
  ok(yield* request(`${target.url}/v1/auth/refresh`, { headers: key, body: { refreshToken } }))
})

describe("a backup", () => {
  it.live("restores all data from a copy of the data directory of a stopped service", () =>
    Effect.gen(function* () {
      const home = yield* temporaryDirectory("svc-")
      // As root, Postgres runs as an unprivileged user, who must be able to enter.
      yield* Effect.promise(() => chmod(home, 0o755))
      const dataDir = join(home, "data")
      const copy = join(home, "copy")
      yield* assertRestores(
        { databaseUrl: "", dataDir, env: { PATH: `${modules}:/usr/bin:/bin` } },
        Effect.promise(async () => {
          await execute("cp", ["-aL", dataDir, copy])
          await rm(dataDir, { recursive: true })
          await execute("cp", ["-a", copy, dataDir])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(programs === undefined)(
    `restores all data from a dump of pg_dump${needsPrograms}`,
    () =>
      Effect.gen(function* () {
        const bin = programs ?? ""
        const server = yield* startServer(bin)
        const url = `${server}/svc`
        const dump = join(yield* temporaryDirectory("dump-"), "svc.dump")
        const sql = (statement: string) =>
          runClient(bin, "psql", `${server}/postgres`, "-c", statement)
        yield* sql("create database svc")
        const env = { SVC_MASTER_KEY: masterKey }
        const dataDir = yield* temporaryDirectory("svc-")
        yield* assertRestores(
          { databaseUrl: url, dataDir, env },
          Effect.gen(function* () {
            const exclusions = ["--no-unlogged-table-data", "--exclude-table-data=*.cluster_*"]
            yield* runClient(
              bin,
              "pg_dump",
              "--format=custom",
              ...exclusions,
              `--file=${dump}`,
              url
            )
            yield* sql("drop database svc with (force)")
            yield* sql("create database svc")
            const options = ["--no-owner", "--exit-on-error", "--single-transaction"]
            yield* runClient(bin, "pg_restore", ...options, `--dbname=${url}`, dump)
          })
        )
      }).pipe(Effect.scoped)
  )
})
