/**
 * `GET /sdk/client.js`: the client as an ES module, for pages without a bundler, and its source map. It is
 * bundled from the sources of the service, so a runner of any release serves the client of its release.
 */
import { createHash } from "node:crypto"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Unavailable } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { matchesTag } from "#server/platform/entity-tags"
import { BrowserBundle, servedFile } from "../browser-bundle/bundle.ts"
import type { BundledFile } from "../browser-bundle/sources.ts"
import { errorResponse } from "../errors.ts"

const maxAgeSeconds = 300

/** Serves a file with `ETag`. `If-None-Match` with its tag gets 304. */
const taggedFile = (file: BundledFile) => {
  const etag = `"${createHash("sha256").update(file.gzip).digest("base64url").slice(0, 22)}"`
  const headers = {
    "cache-control": `public, max-age=${maxAgeSeconds}`,
    // Pages that are isolated across origins load it, too.
    "cross-origin-resource-policy": "cross-origin",
    etag
  }
  const serve = servedFile(file, headers)
  const unchanged = HttpServerResponse.empty({
    status: 304,
    headers: { ...headers, vary: "accept-encoding" }
  })
  return (request: HttpServerRequest.HttpServerRequest) => {
    const tags = request.headers["if-none-match"]
    return tags !== undefined && matchesTag(tags, etag) ? unchanged : serve(request)
  }
}

const unbuilt = errorResponse(
  Unavailable,
  new Unavailable({
    message:
      "The client could not be built; the log of the service says why. In a checkout, `npm ci` installs " +
      "what it is built with. After a fix, restart the service."
  })
)

export const ClientScript = Layer.unwrap(
  Effect.gen(function* () {
    const { content } = yield* BrowserBundle
    const files = yield* Effect.cached(
      Effect.map(content, ({ client }) => ({
        code: taggedFile(client.code),
        map: taggedFile(client.map)
      }))
    )
    const route = (path: "/sdk/client.js" | "/sdk/client.js.map", part: "code" | "map") =>
      HttpRouter.add(
        "GET",
        path,
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          return yield* files.pipe(
            Effect.map((each) => each[part](request)),
            Effect.orElseSucceed(() => unbuilt)
          )
        })
      )
    return Layer.merge(route(paths.clientScript, "code"), route(`${paths.clientScript}.map`, "map"))
  })
)
