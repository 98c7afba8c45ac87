/** Runners of functions that share a database and a blob store, each with a disk of its own. */
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { assert } from "@effect/vitest"
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
import { FunctionsWorld, program, withFunctions } from "./functions.ts"
import { SharedDatabase } from "./http-stack.ts"
import { dataFolder } from "./data-folder.ts"

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
  const folder = yield* dataFolder("snapshots-test-")
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
const makeEnvironment = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
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
    dataOf: (environmentId: string) => local.context.directories.dataOf(environmentId),
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

/** Writes a number to each kind of storage, one after the other, and reads them back. */
const storing = program(
  `
  import { DurableObject } from "cloudflare:workers"
  export class Room extends DurableObject {
    async write(n) { await this.ctx.storage.put("n", n) }
    async read() { return (await this.ctx.storage.get("n")) ?? 0 }
  }
  export default { async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    const n = Number(searchParams.get("n"))
    const room = env.ROOM.get(env.ROOM.idFromName("a"))
    if (pathname === "/write") {
      await env.DB.exec("create table if not exists t (n integer, bytes blob)")
      await env.DB.prepare("insert into t values (?, null)").bind(n).run()
      await env.CACHE.put("hot", String(n))
      await env.CACHE.put("k" + n, String(n))
      await env.FILES.put("hot", "f".repeat(5000) + n)
      await room.write(n)
      return new Response("written")
    }
    if (pathname === "/grow") {
      await env.DB.exec("create table if not exists t (n integer, bytes blob)")
      for (let i = 0; i < n; i += 1) {
        await env.DB.prepare("insert into t values (0, randomblob(500000))").run()
      }
      return new Response("grown")
    }
    const rows = (await env.DB.prepare("select n from t").all()).results.map(({ n }) => n)
    const keys = await Promise.all(rows.slice(0, -1).map((n) => env.CACHE.get("k" + n)))
    return Response.json({
      rows,
      keys: keys.map(Number),
      hot: Number(await env.CACHE.get("hot")),
      file: Number((await (await env.FILES.get("hot"))?.text())?.slice(5000)),
      room: await room.read()
    })
  } }`,
  {
    bindings: [
      { name: "DB", type: "db" },
      { name: "CACHE", type: "kv" },
      { name: "FILES", type: "files" },
      { name: "ROOM", type: "durableObject", class: "Room" }
    ]
  }
)

type Runner = Effect.Success<ReturnType<typeof startRunner>>

/** An environment that a runner has opened under an epoch. */
export const openOn = Effect.fnUntraced(function* (runner: Runner, epoch = 1) {
  const id = runner.live(storing)
  yield* makeEnvironment(id)
  assert.strictEqual(yield* runner.snapshots.restore(id, epoch), "local")
  return id
})

/** What a runner finds of the data. */
export const readOn = Effect.fnUntraced(function* (runner: Runner, id: EnvironmentId) {
  runner.run(id, storing)
  return JSON.parse(yield* runner.call(id, "read")) as {
    rows: Array<number>
    keys: Array<number>
    hot: number
    file: number
    room: number
  }
})

/** Objects that rows name. */
export const namedObjects = Effect.fnUntraced(function* (id: EnvironmentId) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ sha256: string }>`
    select sha256 from function_snapshot_objects where environment_id = ${id}`
  return rows.map(({ sha256 }) => `${id}/functions/${sha256}`)
})

/** Objects in the store. */
export const objectsOf = Effect.fnUntraced(function* (id: EnvironmentId) {
  return (yield* (yield* SharedStore).objects).filter((key) => key.startsWith(id))
})
