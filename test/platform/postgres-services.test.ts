/**
 * Runners that share an embedded Postgres: three of them while it dies and its disk is full, and one beside
 * the release before, which counts the users of the server in another way.
 * @module-tag long
 */
import { execFileSync } from "node:child_process"
import { chmod, mkdtemp, readFile, rm, statfs, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schedule, Scope } from "effect"
import { type Runner, startRunner } from "#testing/runners"
import { compatibleRelease, skipReason } from "../support/compatible-release.ts"
import { checkOut } from "../support/release.ts"

const patience = { times: 1200, schedule: Schedule.spaced("100 millis") }

const makeFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = await mkdtemp(join(tmpdir(), "shared-postgres-"))
    await chmod(folder, 0o755)
    return folder
  }),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
)

const run = (program: string, ...args: ReadonlyArray<string>): boolean => {
  try {
    execFileSync(program, args, { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

const diskBytes = 640 * 1024 * 1024

/** A folder on a file system of its own; undefined where this process may not mount one. */
const makeSmallDisk = Effect.gen(function* () {
  const folder = yield* makeFolder
  if (!run("mount", "-t", "tmpfs", "-o", `size=${diskBytes},mode=755`, "tmpfs", folder)) {
    return undefined
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => run("umount", "--lazy", folder)))
  return folder
})

const canMount = Effect.runSync(
  Effect.sync(
    () =>
      process.platform === "linux" &&
      process.getuid?.() === 0 &&
      run("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt")
  )
)

const start = (dataDir: string, main?: string) =>
  startRunner({ databaseUrl: "", dataDir, main, env: { SVC_VOICE_UDP_PORTS: "off" } })

const untilReady = ({ output, url }: Runner, isReady: boolean) =>
  Effect.promise(() =>
    fetch(`${url}/readyz`).then(
      ({ status }) => (status === 200) === isReady,
      () => !isReady
    )
  ).pipe(Effect.filterOrFail(Boolean, output), Effect.retry(patience))

const postmaster = (dataDir: string) =>
  Effect.promise(async () => {
    const file = join(dataDir, "postgres", "data", "postmaster.pid")
    const [pid, , , port] = (await readFile(file, "utf8")).split("\n")
    return { pid: Number(pid), port: Number(port) }
  })

/** Runs work, after which the runner must still be ready. */
const assertReadyThrough = Effect.fnUntraced(function* <E>(
  runner: Runner,
  work: Effect.Effect<void, E>
) {
  yield* work
  // The service that has stopped would have taken the server with it by now.
  yield* Effect.forEach(
    Array.from({ length: 10 }),
    () =>
      Effect.promise(() => fetch(`${runner.url}/readyz`)).pipe(
        Effect.map(({ status }) => assert.strictEqual(status, 200, runner.output()))
      ),
    { discard: true }
  )
  assert.notInclude(runner.output(), "The embedded Postgres is gone")
})

describe("three runners on one embedded Postgres", () => {
  it.live("goes on at three runners after each kill of their embedded Postgres, on its port", () =>
    Effect.gen(function* () {
      const dataDir = yield* makeFolder
      const runners = [yield* start(dataDir), yield* start(dataDir), yield* start(dataDir)]
      const before = yield* postmaster(dataDir)
      for (const [, first] of [0, 1].entries()) {
        process.kill((yield* postmaster(dataDir)).pid, "SIGKILL")
        yield* Effect.forEach(runners, (runner) => untilReady(runner, true), {
          concurrency: "unbounded"
        })
        assert.strictEqual((yield* postmaster(dataDir)).port, before.port, `kill ${first}`)
      }
      for (const { output } of runners) {
        assert.include(output(), "The embedded Postgres is back on port")
      }
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(!canMount)(
    `comes back with three runners when a full disk of the embedded Postgres has space again${
      canMount ? "" : " (skipped: needs root and mount)"
    }`,
    () =>
      Effect.gen(function* () {
        const dataDir = yield* makeSmallDisk
        if (dataDir === undefined) return assert.fail("mount failed")
        const runners = [yield* start(dataDir), yield* start(dataDir), yield* start(dataDir)]
        const filler = join(dataDir, "filler")
        const { bavail, bsize } = yield* Effect.promise(() => statfs(dataDir))
        yield* Effect.promise(() => writeFile(filler, Buffer.alloc(bavail * bsize)).catch(() => {}))
        process.kill((yield* postmaster(dataDir)).pid, "SIGKILL")
        const logs = Effect.sync(() => runners.map(({ output }) => output()).join("\n"))
        yield* logs.pipe(
          Effect.filterOrFail((text) => text.includes("Failed to restart the embedded Postgres")),
          Effect.retry(patience)
        )
        for (const runner of runners) yield* untilReady(runner, false)
        yield* Effect.promise(() => rm(filler))
        yield* Effect.forEach(runners, (runner) => untilReady(runner, true), {
          concurrency: "unbounded"
        })
        // The last one stops the server, which could go on in a file system that is no longer mounted.
        for (const { stop } of runners) yield* stop
      }).pipe(Effect.scoped)
  )
})

describe(`two releases on one embedded Postgres${skipReason() === undefined ? "" : ` (${skipReason()})`}`, () => {
  it.live.skipIf(skipReason() !== undefined)(
    "leaves the embedded Postgres to the runner of the other release, whichever stops first",
    () =>
      Effect.gen(function* () {
        const older = yield* checkOut(compatibleRelease)
        for (const order of [
          [older, undefined],
          [undefined, older]
        ]) {
          const dataDir = yield* makeFolder
          const scope = yield* Scope.make()
          const leaving = yield* Scope.provide(start(dataDir, order[0]), scope)
          const staying = yield* start(dataDir, order[1])
          yield* untilReady(staying, true)
          yield* assertReadyThrough(staying, leaving.stop)
          yield* Scope.close(scope, Exit.void)
          // And the other way round: the release that came second stops first.
          const returned = yield* start(dataDir, order[0])
          yield* assertReadyThrough(returned, staying.stop)
        }
      }).pipe(Effect.scoped)
  )
})
