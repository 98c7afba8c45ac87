/** `GET /docs` and below: the documentation as a site. The first request builds it. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { paths } from "#rpc/paths"
import { ApiPage } from "../api-page/route.ts"
import type { SiteFile } from "./site.ts"

/** Content security policy: everything comes from this service. */
const policy =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const respond = (
  file: SiteFile,
  request: HttpServerRequest.HttpServerRequest,
  status: number
): HttpServerResponse.HttpServerResponse => {
  const headers = {
    "cache-control": "no-cache",
    "content-security-policy": policy,
    etag: file.etag,
    vary: "accept-encoding"
  }
  if (status === 200 && request.headers["if-none-match"]?.includes(file.etag) === true) {
    return HttpServerResponse.empty({ status: 304, headers })
  }
  const takesGzip = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
  return takesGzip && file.gzipped !== undefined
    ? HttpServerResponse.uint8Array(file.gzipped, {
        status,
        contentType: file.type,
        headers: { ...headers, "content-encoding": "gzip" }
      })
    : HttpServerResponse.uint8Array(file.body, { status, contentType: file.type, headers })
}

/** `/docs/guides/rooms.md` and `/docs/` are what people type. */
const canonical = (path: string): string => path.replace(/(?:\.md|\/+)$/, "")

const Pages = Layer.unwrap(
  Effect.gen(function* () {
    // Markdown and highlighting are loaded when someone reads.
    const build = Effect.promise(() => import("./site.ts").then(({ buildSite }) => buildSite()))
    const site = yield* Effect.cached(build)
    const serve = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { files, missing } = yield* site
      const [path = ""] = request.url.split("?", 1)
      const file = files.get(path)
      if (file !== undefined) return respond(file, request, 200)
      const meant = canonical(path)
      return meant !== path && files.has(meant)
        ? HttpServerResponse.redirect(meant, { status: 308 })
        : respond(missing, request, 404)
    })
    // The router derives a route for `/docs` from the one for all below it.
    return HttpRouter.add("GET", paths.docsPages, serve)
  })
)

/** The pages and the reference of the API. */
export const DocsSite = Layer.merge(Pages, ApiPage)
