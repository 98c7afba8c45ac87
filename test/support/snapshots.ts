/** Runners of functions that share a database and a blob store, each with a disk of its own. */
import { mkdtempSync, rmSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { EnvironmentId } from "#rpc/ids"
import { SnapshotRepository } from "#sql/functions/snapshots"
import { FunctionHosts } from "#server/features/functions/host/local"
import type { FunctionProgram } from "#server/features/functions/program"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionSnapshots } from "#server/features/functions/snapshots"
import { folderStore } from "#server/platform/blobs/folder"
import { BlobStore, BlobStoreError } from "#server/platform/blobs/store"
import { sharedPoolLayer } from "#server/platform/database-pool"
import { FunctionsWorld, withFunctions } from "./functions.ts"
import { SharedDatabase } from "./http/stack.ts"

/** The store of the runners: what it has stored, and how many further objects it takes. */
export class SharedStore extends Context.Service<
  SharedStore,
  {
    readonly folder: string
    readonly stored: Array<string>
    readonly state: { left: number }
    /** Keys of all objects of snapshots. */
    readonly objects: Effect.Effect<ReadonlyArray<string>>
  }
>()("test/support/snapshots/SharedStore") {}

const makeStore = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "snapshots-test-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )
  const state = { left: Infinity }
  const stored: Array<string> = []
  const store = yield* folderStore(join(folder, "blobs"))
  const blobs = BlobStore.of({
    ...store,
    archive: (key, file) =>
      Effect.suspend(() => {
        if (state.left <= 0) return new BlobStoreError({ operation: "store", cause: "it is full" })
        state.left -= 1
        stored.push(key)
        return store.archive(key, file)
      })
  })
  const objects = Effect.promise(async () => {
    const names = await readdir(join(folder, "blobs"), { recursive: true }).catch(() => [])
    return names.filter((name) => /\/functions\/[0-9a-f]{64}$/.test(name))
  })
  const shared = SharedStore.of({ folder, stored, state, objects })
  return Context.make(BlobStore, blobs).pipe(Context.add(SharedStore, shared))
})

/** What all runners share. */
export const Shared = Layer.effectContext(makeStore).pipe(
  Layer.provideMerge(SnapshotRepository.layer),
  Layer.provideMerge(
    Layer.unwrap(Effect.map(SharedDatabase, (url) => sharedPoolLayer({ url, connections: 5 })))
  ),
  Layer.provide(SharedDatabase.layer),
  Layer.provideMerge(SecureRandom.layerWebCrypto)
)

/** Adds an environment to the database. */
export const makeEnvironment = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into projects (id, name, slug, created_at)
    values (${environmentId}, 'game', ${environmentId.toLowerCase()}, now())`
  yield* sql`insert into environments (id, project_id, name, created_at)
    values (${environmentId}, ${environmentId}, 'development', now())`
})

/** A runner with a disk of its own. */
export const startRunner = Effect.fnUntraced(function* (name: string, seconds = 3600) {
  const { folder } = yield* SharedStore
  const context = yield* Layer.build(
    withFunctions(
      {
        SVC_DATA_DIR: join(folder, name),
        SVC_FUNCTIONS_SNAPSHOT_SECONDS: String(seconds),
        SVC_BLOBS_URL: "s3://unused",
        AWS_ACCESS_KEY_ID: "unused",
        AWS_SECRET_ACCESS_KEY: "unused"
      },
      FunctionSnapshots.layer
    )
  )
  const world = Context.get(context, FunctionsWorld)
  const { local } = Context.get(context, FunctionHosts)
  if (typeof local === "string") return yield* Effect.die(new Error(local))
  return {
    snapshots: Context.get(context, FunctionSnapshots),
    runtime: Context.get(context, FunctionsRuntime),
    dataOf: (environmentId: string) => local.context.places.dataOf(environmentId),
    live: world.live,
    run: (environmentId: EnvironmentId, program: FunctionProgram) =>
      void world.states.set(environmentId, { kind: "live", program }),
    /** Calls the function; fails unless it answers 200. */
    call: (environmentId: string, path: string) =>
      Effect.promise(async () => {
        const response = await fetch(`${world.url}/${environmentId}/${path}`)
        const text = await response.text()
        if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`)
        return text
      }),
    close: (environmentId: EnvironmentId) =>
      Effect.promise(() => local.hosts.close(environmentId, 1000))
  }
})
