/**
 * Program that stops the embedded Postgres of a data directory unless a session shows a service. The watcher
 * runs it under the start lock, when no service holds the file of users.
 */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem } from "effect"
import { SecureRandom } from "effect/crypto"
import { openCluster } from "./cluster.ts"
import { usedExitCode } from "./lock-files.ts"
import { stopUnlessUsed } from "./server.ts"

const [directory = ""] = process.argv.slice(2)

const stop = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(join(directory, "postgres")))) return
  const isUsed = yield* stopUnlessUsed(yield* openCluster(directory))
  if (isUsed) process.exitCode = usedExitCode
})

await Effect.runPromise(
  stop.pipe(Effect.provide([NodeServices.layer, SecureRandom.layerWebCrypto]))
)
