/**
 * What browsers load: the dashboard and the client. Their sources are bundled when they are needed first, and
 * the bundle is kept in the data directory under the hash of the sources. A Docker image and the npm package
 * bring a bundle, so the service itself needs none of the packages that it is made of.
 */
import { execFile } from "node:child_process"
import { mkdir, readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { gunzipSync } from "node:zlib"
import { Context, Effect, Layer, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Settings } from "#server/platform/settings/settings"
import { type BundleContent, type BundledFile, bundler, root, sourceHash } from "./sources.ts"

const StoredFile = Schema.Struct({ type: Schema.String, gzip: Schema.String })

/** Stored form of a bundle. */
const StoredBundle: Schema.Codec<BundleContent, unknown> = Schema.Struct({
  hash: Schema.String,
  client: Schema.Struct({ code: StoredFile, map: StoredFile }),
  dashboard: Schema.Struct({
    names: Schema.Struct({
      main: Schema.String,
      style: Schema.String,
      theme: Schema.String,
      icon: Schema.String
    }),
    files: Schema.Record(Schema.String, StoredFile)
  })
})

export class BundleError extends Schema.TaggedError<BundleError>()("BundleError", {
  message: Schema.String
}) {}

const shipped = join(root, "dist/browser.json")

/** Timeout of the bundler. It takes a second; a busy machine is ten times as slow. */
const bundleMillis = 120_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(StoredBundle))

const stored = (file: string) =>
  Effect.tryPromise(() => readFile(file, "utf8")).pipe(
    Effect.flatMap(decode),
    Effect.orElseSucceed(() => undefined)
  )

/** Removes the bundles of older sources, and those of release 0.1, which had the dashboard alone. */
const removeOlder = async (folder: string, current: string): Promise<void> => {
  const isOlder = (name: string) =>
    /^(?:browser|dashboard)-[0-9a-f]{16}\.json$/.test(name) && name !== current
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
const load = Effect.fnUntraced(function* (dataDir: string) {
  const hash = yield* Effect.promise(sourceHash)
  const own = yield* stored(shipped)
  if (own !== undefined && (hash === undefined || own.hash === hash)) return own
  if (hash === undefined)
    return yield* new BundleError({ message: "This package has no files for browsers." })
  const name = `browser-${hash}.json`
  return (yield* stored(join(dataDir, name))) ?? (yield* build(dataDir, name))
})

/** The bundle, which is loaded once. A failure is logged once, and stays. */
export class BrowserBundle extends Context.Service<
  BrowserBundle,
  { readonly content: Effect.Effect<BundleContent, BundleError> }
>()("server/http/browser-bundle/bundle/BrowserBundle") {
  static readonly layer = Layer.effect(
    BrowserBundle,
    Effect.gen(function* () {
      const { dataDir } = yield* Settings
      const content = yield* load(dataDir).pipe(
        Effect.tapError(({ message }) =>
          Effect.logWarning("Failed to bundle the dashboard and the client", message)
        ),
        Effect.cached
      )
      return { content }
    })
  )
}

/** Serves a bundled file, compressed to those who read that. */
export const servedFile = (
  { gzip, type: contentType }: BundledFile,
  headers: Readonly<Record<string, string>>
) => {
  const small = Buffer.from(gzip, "base64")
  const compressed = HttpServerResponse.uint8Array(small, {
    contentType,
    headers: { ...headers, vary: "accept-encoding", "content-encoding": "gzip" }
  })
  return (request: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse =>
    /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
      ? compressed
      : HttpServerResponse.uint8Array(gunzipSync(small), {
          contentType,
          headers: { ...headers, vary: "accept-encoding" }
        })
}
