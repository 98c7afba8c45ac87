/**
 * `GET /dashboard`: one page for all views, and its files. The policy allows nothing of another origin
 * and nothing inline, so a text that reaches the page cannot become a script.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NotFound } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { BrowserBundle, servedFile } from "../browser-bundle/bundle.ts"
import type { BundleContent } from "../browser-bundle/sources.ts"
import { makeDashboardSession } from "../dashboard-session.ts"
import { errorResponse } from "../errors.ts"

const policy =
  // The editor marks problems with images of its own style sheet.
  "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; " +
  "form-action 'self'; frame-ancestors 'none'"

const pageHeaders = { "content-security-policy": policy, "referrer-policy": "no-referrer" }

const files = `${paths.dashboard}/files` as const

const pageOf = ({ names }: BundleContent["dashboard"]): string =>
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
const fileHeaders = { "cache-control": "public, max-age=31536000, immutable" }

const notFound = errorResponse(NotFound, new NotFound())

/** The page and its files. After a failed build, a page that reports it. */
const makeSite = Effect.flatMap(BrowserBundle, ({ content }) =>
  Effect.cached(
    content.pipe(
      Effect.map(({ dashboard }) => ({
        page: html(pageOf(dashboard)),
        files: new Map(
          Object.entries(dashboard.files).map(([name, file]) => [
            name,
            servedFile(file, fileHeaders)
          ])
        )
      })),
      Effect.orElseSucceed(() => ({
        page: html(failedPage, 503),
        files: new Map<string, ReturnType<typeof servedFile>>()
      }))
    )
  )
)

/** The routes of the dashboard, which answer only where it is served. */
export const DashboardPages = Layer.unwrap(
  Effect.gen(function* () {
    const { isServed } = yield* makeDashboardSession
    const site = yield* makeSite
    const page = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      isServed(request) ? Effect.map(site, ({ page }) => page) : Effect.succeed(notFound)
    )
    const file = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      if (!isServed(request)) return notFound
      const { name = "" } = yield* HttpRouter.params
      return (yield* site).files.get(name)?.(request) ?? notFound
    })
    return Layer.mergeAll(
      HttpRouter.add("GET", `${files}/:name`, file),
      // Serves the path without a view, too.
      HttpRouter.add("GET", paths.dashboardViews, page)
    )
  })
)
