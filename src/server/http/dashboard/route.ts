/**
 * `GET /dashboard`: one page for all views, and its files. The policy allows nothing of another origin
 * and nothing inline, so a text that reaches the page cannot become a script.
 */
import { gunzipSync } from "node:zlib"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NotFound } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { Settings } from "#server/platform/settings/settings"
import { makeDashboardSession } from "../dashboard-session.ts"
import { errorResponse } from "../errors.ts"
import { loadBundle } from "./bundle.ts"
import type { BundledFile, DashboardBundle } from "./sources.ts"

const policy =
  // The editor marks problems with images of its own style sheet.
  "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; " +
  "form-action 'self'; frame-ancestors 'none'"

const pageHeaders = { "content-security-policy": policy, "referrer-policy": "no-referrer" }

const files = `${paths.dashboard}/files` as const

const pageOf = ({ names }: DashboardBundle): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Dashboard</title>` +
  `<meta name="viewport" content="width=device-width, initial-scale=1">` +
  `<meta name="color-scheme" content="light dark">` +
  `<link rel="icon" href="${files}/${names.icon}"><script src="${files}/${names.theme}"></script>` +
  `<link rel="stylesheet" href="${files}/${names.style}">` +
  `<script type="module" src="${files}/${names.main}"></script></head>` +
  // Painted before the script has run, which takes half a second on a slow device.
  `<body><div id="app"><header class="top"><span class="brand"><img src="${files}/${names.icon}" ` +
  `alt="" width="24" height="24">Player backend</span></header>` +
  `<noscript>The dashboard needs JavaScript.</noscript></div></body></html>`

const html = (text: string, status = 200) =>
  HttpServerResponse.text(text, {
    status,
    contentType: "text/html; charset=utf-8",
    headers: pageHeaders
  })

const failedPage =
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Dashboard</title></head><body>` +
  `<h1>The dashboard could not be built</h1><p>The log of the service says why. In a checkout, ` +
  `<code>npm ci</code> installs what it is built with. The API works without it. After a fix, ` +
  `restart the service.</p></body></html>`

/** Headers of files. Names contain the hash of the content, so a browser may keep the file. */
const fileHeaders = {
  "cache-control": "public, max-age=31536000, immutable",
  vary: "accept-encoding"
}

const fileOf = ({ gzip, type }: BundledFile) => {
  const small = Buffer.from(gzip, "base64")
  const contentType = `${type}; charset=utf-8`
  return {
    small: HttpServerResponse.uint8Array(small, {
      contentType,
      headers: { ...fileHeaders, "content-encoding": "gzip" }
    }),
    plain: () =>
      HttpServerResponse.uint8Array(gunzipSync(small), { contentType, headers: fileHeaders })
  }
}

const notFound = errorResponse(NotFound, new NotFound())

/**
 * Serves the page and its files. It logs a failed build once, and answers with a page that reports
 * it.
 */
const makeSite = Effect.cached(
  Effect.map(loadBundle, (bundle) => ({
    page: html(pageOf(bundle)),
    files: new Map(Object.entries(bundle.files).map(([name, file]) => [name, fileOf(file)]))
  })).pipe(
    Effect.tapError(({ message }) => Effect.logWarning("Failed to build the dashboard", message)),
    Effect.orElseSucceed(() => ({
      page: html(failedPage, 503),
      files: new Map<string, ReturnType<typeof fileOf>>()
    }))
  )
)

/** The routes of the dashboard, which answer only where it is served. */
export const DashboardPages = Layer.unwrap(
  Effect.gen(function* () {
    const settings = yield* Settings
    const { isServed } = yield* makeDashboardSession
    const site = Effect.provideService(yield* makeSite, Settings, settings)
    const page = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      isServed(request) ? Effect.map(site, ({ page }) => page) : Effect.succeed(notFound)
    )
    const file = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      if (!isServed(request)) return notFound
      const { name = "" } = yield* HttpRouter.params
      const found = (yield* site).files.get(name)
      if (found === undefined) return notFound
      const isSmall = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
      return isSmall ? found.small : found.plain()
    })
    return Layer.mergeAll(
      HttpRouter.add("GET", `${files}/:name`, file),
      // Serves the path without a view, too.
      HttpRouter.add("GET", paths.dashboardViews, page)
    )
  })
)
