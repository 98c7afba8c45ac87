/**
 * `npm start`: the service ends with it, also when only npm gets the signal. SIGINT for npm alone ends
 * nothing, not even npm, which waits for its script.
 */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { TestDatabase } from "#testing/app"
import { freePort } from "#testing/runners"
import { DatabaseLive } from "../support/service.ts"
import { dataFolder } from "../support/data-folder.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

const healthOf = (port: number) =>
  Effect.promise(() =>
    fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: "close" } }).then(
      ({ status }) => status,
      () => undefined
    )
  )

const untilHealth = (port: number, status: number | undefined) =>
  healthOf(port).pipe(
    Effect.filterOrFail((found) => found === status),
    Effect.retry({ times: 1200, schedule: Schedule.spaced("50 millis") })
  )

/** Starts the service by npm, the leader of a process group. */
const npmStart = Effect.fnUntraced(function* (port: number) {
  const { url } = yield* TestDatabase
  const dataDir = yield* dataFolder("npm-start-")
  const settings = { PORT: port, HOST: "127.0.0.1", DATABASE_URL: url, SVC_DATA_DIR: dataDir }
  const assignments = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  return yield* Effect.acquireRelease(
    Effect.sync(() =>
      // `env` keeps the other variables, by which npm is found, and becomes npm.
      spawn("env", [...assignments, "npm", "start"], { cwd: root, detached: true, stdio: "ignore" })
    ),
    ({ pid }) =>
      Effect.ignore(Effect.try(() => (pid === undefined ? false : process.kill(-pid, "SIGKILL"))))
  )
})

describe("npm start", () => {
  it.live.each(["SIGTERM", "SIGKILL"] as const)(
    "stops the service of npm start when only npm gets %s",
    (signal) =>
      Effect.gen(function* () {
        const port = yield* freePort
        const npm = yield* npmStart(port)
        yield* untilHealth(port, 200)
        assert.isTrue(npm.kill(signal))
        yield* untilHealth(port, undefined)
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(DatabaseLive))),
    { tags: "long" }
  )
})
