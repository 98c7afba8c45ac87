/** Creation of the data directory, also where none can be. */
import { rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeDataDirectory } from "#server/platform/postgres/data-directory"

describe("the data directory", () => {
  it.live(
    "creates the data directory and its parents, also when several callers do so at a time",
    () =>
      Effect.gen(function* () {
        const root = join(tmpdir(), `data-directory-${process.pid}`)
        const directory = join(root, "a", "b")
        yield* Effect.addFinalizer(() => Effect.promise(() => rm(root, { recursive: true })))
        const make = makeDataDirectory(directory)
        yield* Effect.all([make, make, make], { concurrency: "unbounded" })
        yield* make
        assert.isTrue((yield* Effect.promise(() => stat(directory))).isDirectory())
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live.skipIf(process.platform !== "linux")(
    "fails at once below a directory that takes none (skipped unless Linux)",
    () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(makeDataDirectory("/proc/svc/data"))
        assert.strictEqual(error._tag, "PlatformError")
        assert.include(error.message, "/proc/svc")
      }).pipe(Effect.provide(NodeServices.layer))
  )
})
