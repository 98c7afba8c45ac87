/** What the user of a function can read below the data directory, on real users. */
import { spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { DiskCache } from "#server/platform/blobs/disk-cache"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

/** A data directory as earlier releases have left it: everybody can read most of it. */
const legacyDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "readable-"))
  for (const folder of ["blobs/env_1", "cards", "blob-cache/files"]) {
    mkdirSync(join(directory, folder), { recursive: true })
    writeFileSync(join(directory, folder, "old"), "old")
  }
  for (const file of ["postgres.lock", "dashboard-0.json"]) writeFileSync(join(directory, file), "")
  chmodSync(directory, 0o755)
  return directory
}

const directory = legacyDirectory()

/** Paths below a directory that a user can read or write. */
const openTo = (uid: number, below: string): ReadonlyArray<string> => {
  const user = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--bounding-set=-all"]
  const open = ["(", "-readable", "-o", "-writable", ")"]
  const all = spawnSync("find", [below], { encoding: "utf8" }).stdout.trim().split("\n")
  const test = ["setpriv", ...user, "--", "find", ...all, "-maxdepth", "0", ...open]
  const { stdout } = spawnSync(test[0] ?? "", test.slice(1), { encoding: "utf8" })
  return stdout.split("\n").filter((path) => path !== "")
}

layer(withFunctions({ SVC_DATA_DIR: directory }), live)("a function's user", (it) => {
  it.effect(
    "lets the user of a function read its own data below the data directory, and nothing else",
    (context) =>
      Effect.gen(function* () {
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(directory, { recursive: true })))
        const { local } = yield* FunctionHosts
        if (typeof local === "string") return assert.fail(local)
        if (!local.context.programs.hasOwnUsers) {
          return context.skip("Functions have users of their own only where root runs the service.")
        }
        const { live: run, url } = yield* FunctionsWorld
        const source = `export default { async fetch(request, env) {
        await env.CACHE.put("a", "1")
        return new Response("ok")
      } }`
        const bindings = [{ name: "CACHE", type: "kv" } as const]
        const [own, other] = [
          run(program(source, { bindings })),
          run(program(source, { bindings }))
        ]
        for (const id of [own, other]) yield* Effect.promise(() => fetch(`${url}/${id}/`))
        yield* Effect.promise(async () => {
          const cache = await DiskCache.open(join(directory, "cards"), 1000)
          writeFileSync(join(directory, "blobs", "new"), "new")
          await cache.take("new.png", join(directory, "blobs", "new"))
        })
        const { data, uid = 0 } = yield* Effect.promise(() => local.context.directories.of(own))
        const open = openTo(uid, directory)
        assert.include(open, join(data, "kv"))
        assert.isEmpty(open.filter((path) => path !== data && !path.startsWith(`${data}/`)))
      })
  )
})
