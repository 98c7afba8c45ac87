/**
 * The dashboard's files. Its sources are bundled when they are needed first, and the bundle is kept in the
 * data directory under the hash of the sources. A Docker image and the npm package bring a bundle, so the
 * service itself needs none of the packages that it is made of.
 */
import { execFile } from "node:child_process"
import { mkdir, readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Schema } from "effect"
import { Settings } from "#server/platform/settings/settings"
import { bundler, type DashboardBundle, root, sourceHash } from "./sources.ts"

/** Stored form of a bundle. */
const StoredBundle: Schema.Codec<DashboardBundle, unknown> = Schema.Struct({
  hash: Schema.String,
  names: Schema.Struct({
    main: Schema.String,
    style: Schema.String,
    theme: Schema.String,
    icon: Schema.String
  }),
  files: Schema.Record(Schema.String, Schema.Struct({ type: Schema.String, gzip: Schema.String }))
})

export class BundleError extends Schema.TaggedError<BundleError>()("BundleError", {
  message: Schema.String
}) {}

const shipped = join(root, "dist/dashboard.json")

/** Timeout of the bundler. It takes a second; a busy machine is ten times as slow. */
const bundleMillis = 120_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(StoredBundle))

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
    await promisify(execFile)(process.execPath, [bundler, file], { timeout: bundleMillis })
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
