/** The service under test: a real one in its own process, on its own Postgres. */
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import { cloneDatabase, testServer } from "#testing/database"
import { startRunner } from "#testing/runners"
import { dataFolder } from "../support/data-folder.ts"

const main = fileURLToPath(new URL("isolated-service.ts", import.meta.url))
const reporter = fileURLToPath(new URL("../chaos/process-stats-reporter.ts", import.meta.url))

export const startTarget = Effect.gen(function* () {
  const server = yield* testServer
  const databaseUrl = Redacted.value(yield* cloneDatabase(server))
  const dataDir = yield* dataFolder("fuzz-")
  return yield* startRunner({
    databaseUrl,
    dataDir,
    main,
    env: {
      // A single node: on a busy machine a member of a cluster may renew its shard locks too late.
      SVC_RUNNER_HOST: "",
      SVC_RUNNER_PORT: "",
      NODE_OPTIONS: `--expose-gc --import ${reporter}`,
      SVC_SIGNUPS: "open",
      SVC_LOG_FORMAT: "json",
      SVC_LOG_LEVEL: "warning",
      // Another service on this machine has the usual one.
      SVC_VOICE_UDP_PORTS: "0",
      SVC_TURN_URLS: "turn:127.0.0.1:3478,stun:127.0.0.1:3478",
      SVC_TURN_SECRET: "a secret shared with nobody"
    }
  })
})
