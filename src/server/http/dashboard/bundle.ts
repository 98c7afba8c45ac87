/**
 * The dashboard's files. Its sources are bundled when they are needed first, and the bundle is kept in the
 * data directory under the hash of the sources. A Docker image and the npm package bring a bundle, so the
 * service itself needs none of the packages that it is made of.
 */
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdir, readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect, Schema } from "effect"
import { Settings } from "#server/platform/settings/settings"

const BundledFile = Schema.Struct({ type: Schema.String, gzip: Schema.String })
export type BundledFile = typeof BundledFile.Type

/** All files by name, and the names of those that the page refers to. */
const DashboardBundle = Schema.Struct({
  hash: Schema.String,
  names: Schema.Struct({
    main: Schema.String,
    style: Schema.String,
    theme: Schema.String,
    icon: Schema.String
  }),
  files: Schema.Record(Schema.String, BundledFile)
})
export type DashboardBundle = typeof DashboardBundle.Type

export class BundleError extends Schema.TaggedError<BundleError>()("BundleError", {
  message: Schema.String
}) {}

const root = fileURLToPath(new URL("../../../..", import.meta.url))
const program = fileURLToPath(new URL("../../dashboard-bundle.ts", import.meta.url))
const shipped = join(root, "dist/dashboard.json")

/** What the bundle is made of; the versions of packages are in the manifest. */
const sources = ["src/dashboard", "src/client"]
const bundler = [program, join(root, "package.json")]

/** The bundler takes a second; a busy machine is ten times as slow. */
const bundleMillis = 120_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(DashboardBundle))

/** Hash of the sources; undefined where there are none, as in the npm package. */
export const sourceHash = async (): Promise<string | undefined> => {
  const hash = createHash("sha256")
  try {
    for (const folder of sources) {
      const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true })
      const files = entries
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
      for (const file of files.toSorted()) hash.update(file).update(await readFile(file))
    }
    for (const file of bundler) hash.update(await readFile(file))
  } catch {
    return undefined
  }
  return hash.digest("hex").slice(0, 16)
}

const stored = (file: string) =>
  Effect.tryPromise(() => readFile(file, "utf8")).pipe(
    Effect.flatMap(decode),
    Effect.orElseSucceed(() => undefined)
  )

/** Removes the bundles of older sources. */
const removeOlder = async (folder: string, current: string): Promise<void> => {
  const isOlder = (name: string) => /^dashboard-[0-9a-f]{16}\.json$/.test(name) && name !== current
  for (const name of (await readdir(folder)).filter(isOlder)) {
    await rm(join(folder, name), { force: true })
  }
}

const build = Effect.fnUntraced(function* (folder: string, name: string) {
  const file = join(folder, name)
  const run = async () => {
    await mkdir(folder, { recursive: true })
    await promisify(execFile)(process.execPath, [program, file], { timeout: bundleMillis })
    await removeOlder(folder, name)
  }
  yield* Effect.tryPromise({
    try: run,
    catch: (cause) => new BundleError({ message: String(cause) })
  })
  const bundle = yield* stored(file)
  return bundle ?? (yield* new BundleError({ message: `${file} is no bundle.` }))
})

/** Reads the bundle, or makes it. */
export const loadBundle = Effect.gen(function* () {
  const { dataDir } = yield* Settings
  const hash = yield* Effect.promise(sourceHash)
  const own = yield* stored(shipped)
  if (own !== undefined && (hash === undefined || own.hash === hash)) return own
  if (hash === undefined)
    return yield* new BundleError({ message: "This package has no dashboard." })
  const name = `dashboard-${hash}.json`
  return (yield* stored(join(dataDir, name))) ?? (yield* build(dataDir, name))
})
