/**
 * `GET /sdk/client.js`: the client as an ES module, for pages without a bundler, and its source
 * map. The repository contains the bundle, so that a runner of any release serves the client of its
 * release.
 */
import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { paths } from "#rpc/paths"
import { matchesTag } from "#server/platform/entity-tags"
import bundle from "./bundle.json" with { type: "json" }

const maxAgeSeconds = 300

/**
 * Serves a text with `ETag`, compressed on the first request. `If-None-Match` with its tag gets
 * 304.
 */
const file = (path: "/sdk/client.js" | "/sdk/client.js.map", text: string, contentType: string) => {
  const etag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`
  const headers = {
    "cache-control": `public, max-age=${maxAgeSeconds}`,
    // Pages that are isolated across origins load it, too.
    "cross-origin-resource-policy": "cross-origin",
    etag,
    vary: "accept-encoding"
  }
  const plain = HttpServerResponse.text(text, { contentType, headers })
  let compressed: HttpServerResponse.HttpServerResponse | undefined
  const compress = () =>
    HttpServerResponse.uint8Array(gzipSync(text, { level: 9 }), {
      contentType,
      headers: { ...headers, "content-encoding": "gzip" }
    })
  const unchanged = HttpServerResponse.empty({ status: 304, headers })
  return HttpRouter.add(
    "GET",
    path,
    Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
      const tags = request.headers["if-none-match"]
      if (tags !== undefined && matchesTag(tags, etag)) return unchanged
      if (!/\bgzip\b/.test(request.headers["accept-encoding"] ?? "")) return plain
      compressed ??= compress()
      return compressed
    })
  )
}

export const ClientScript = Layer.mergeAll(
  file(paths.clientScript, bundle.code, "text/javascript; charset=utf-8"),
  file(`${paths.clientScript}.map`, bundle.map, "application/json")
)
