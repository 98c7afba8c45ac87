/** The service under fire: the real one, in a process of its own, on a Postgres of its own. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import { cloneDatabase, testServer } from "#testing/database"
import { startRunner } from "#testing/runners"

const reporter = fileURLToPath(new URL("../chaos/vitals-reporter.ts", import.meta.url))

/** Where nobody listens: no sign-in provider is asked for anything. */
const nobody = "http://127.0.0.1:9"

export const startTarget = Effect.gen(function* () {
  const server = yield* testServer
  const databaseUrl = Redacted.value(yield* cloneDatabase(server))
  const dataDir = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "fuzz-"))),
    (dir) => Effect.promise(() => rm(dir, { recursive: true, force: true }))
  )
  return yield* startRunner({
    databaseUrl,
    dataDir,
    env: {
      // Alone: a crowded machine would keep it from renewing its locks in time.
      SVC_RUNNER_HOST: "",
      SVC_RUNNER_PORT: "",
      NODE_OPTIONS: `--expose-gc --import ${reporter}`,
      SVC_SIGNUPS: "open",
      SVC_LOG_FORMAT: "json",
      SVC_LOG_LEVEL: "warning",
      SVC_TURN_URLS: "turn:127.0.0.1:3478,stun:127.0.0.1:3478",
      SVC_TURN_SECRET: "a secret shared with nobody",
      SVC_OAUTH_GOOGLE_URL: nobody,
      SVC_OAUTH_DISCORD_URL: nobody,
      SVC_OAUTH_APPLE_URL: nobody,
      SVC_OAUTH_X_URL: nobody
    }
  })
})
