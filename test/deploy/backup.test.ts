/**
 * Runs the commands of `docs/operations/backup.md`: back up, delete, restore, compare. Covers a copy of the
 * stopped embedded database, and `pg_dump` of an external one.
 */
import { execFile } from "node:child_process"
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, configure, guest, request, type TestTarget } from "#testing/players"
import { startRunner } from "#testing/runners"
import { programs, runClient, startServer } from "../support/debian-postgres.ts"
import { targetOf } from "../support/runner-target.ts"
import { masterKeyOf } from "../support/master-keys.ts"

const temporaryDirectory = (prefix: string) =>
  Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), prefix))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )

const execute = promisify(execFile)
const modules = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url))

const masterKey = masterKeyOf(5)

const ok = (answer: Answer): unknown => {
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

const config = {
  version: 1,
  features: { saves: true, stats: true, multiplayer: true },
  stats: [{ key: "kills" }]
}

/** A player with a save and a stat, and a stored secret of the environment. */
const play = Effect.fnUntraced(function* (target: TestTarget) {
  yield* configure(target, config)
  const player = yield* guest(target, "Ada")
  const headers = {
    "x-svc-key": target.publishableKey,
    authorization: `Bearer ${player.accessToken}`
  }
  const ask = (method: string, path: string, body?: unknown) =>
    Effect.map(request(`${target.url}${path}`, { method, headers, body }), ok)
  yield* ask("PUT", "/v1/saves/slot", { data: { level: 4 } })
  yield* ask("POST", "/v1/stats", { stats: { kills: 7 } })
  return { player, headers }
})

/** Reads the player's data, the config and a secret that is encrypted in the database. */
const readAll = Effect.fnUntraced(function* (
  target: TestTarget,
  headers: Readonly<Record<string, string>>
) {
  const read = (path: string, as: Readonly<Record<string, string>>) =>
    Effect.map(request(`${target.url}${path}`, { headers: as }), ok)
  const server = { "x-svc-key": target.secretKey }
  return {
    me: yield* read("/v1/players/me", headers),
    save: yield* read("/v1/saves/slot", headers),
    stats: yield* read("/v1/stats", headers),
    config: yield* read("/v1/config", server),
    secret: yield* read("/v1/admin/integrity/webhook-secret", server)
  }
})

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

  it.live.skipIf(programs === undefined)("restores all data from a dump of pg_dump", () =>
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
          yield* runClient(bin, "pg_dump", "--format=custom", ...exclusions, `--file=${dump}`, url)
          yield* sql("drop database svc with (force)")
          yield* sql("create database svc")
          const options = ["--no-owner", "--exit-on-error", "--single-transaction"]
          yield* runClient(bin, "pg_restore", ...options, `--dbname=${url}`, dump)
        })
      )
    }).pipe(Effect.scoped)
  )
})
