/**
 * `GET /` in development: what runs here, where the keys of the demo project are, and what to do next.
 * Only browsers on this machine can read it; elsewhere the page does not exist. In production `GET /`
 * leads to the dashboard.
 */
import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NotFound } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { devMailPath } from "#server/platform/mail/outbox"
import { escapeHtml } from "#server/platform/mail/templates"
import { Settings } from "#server/platform/settings/settings"
import { SignInLinks } from "#server/features/developers/sign-in-links"
import { errorResponse } from "./errors.ts"
import { isLocalRequest } from "./local-request.ts"
import { plainPage } from "./look/plain-page.ts"

const style =
  "body{max-width:44rem;margin:3rem auto;padding:0 1rem}ul{list-style:none;padding:0}" +
  "li{display:flex;gap:12px;border-bottom:1px solid var(--line);padding:8px 0;color:var(--quiet)}" +
  "li a{flex:0 0 8.5rem}"

const linkTo = (path: string, text: string): string =>
  `<li><a href="${path}"><code>${path}</code></a> ${text}</li>`

interface StartPageOptions {
  readonly dataDir: string
  readonly hasDemo: boolean
  /** The address of the dashboard, with a sign-in that works once; undefined where it is not here. */
  readonly dashboard: string | undefined
  /** Whether the service stores mails instead of sending them. */
  readonly storesMails: boolean
}

const bodyOf = ({ dashboard, dataDir, hasDemo, storesMails }: StartPageOptions): string =>
  `<h1>Player backend</h1><p>The service runs here in development mode.</p><ul>` +
  (dashboard === undefined
    ? ""
    : `<li><a href="${dashboard}"><code>${paths.dashboard}</code></a> ` +
      `is the dashboard of all projects</li>`) +
  (hasDemo ? linkTo(paths.demo, "leads to two demo games") : "") +
  linkTo(paths.docs, "is the documentation") +
  linkTo(paths.apiPage, "is the reference of the API") +
  linkTo(paths.voicePage, "is a voice call, to try in two tabs") +
  linkTo(paths.openapi, "is the OpenAPI document") +
  linkTo(paths.asyncapi, "is the AsyncAPI document of the socket") +
  (storesMails ? linkTo(devMailPath, "shows the mails that the service has written") : "") +
  `</ul><p>The keys of the project <code>demo</code> are in ` +
  `<code>${escapeHtml(dataDir)}/dev-keys.json</code>.</p>` +
  `<p>Next: <code>README.md</code>, section First game.</p>`

const developmentPage = Effect.gen(function* () {
  const { dashboard: place, dataDir, demoGames, mail } = yield* Settings
  const links = yield* SignInLinks
  const notFound = errorResponse(NotFound, new NotFound())
  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (!isLocalRequest(request)) return notFound
    const code = Option.getOrUndefined(yield* links.create)
    const path = code === undefined ? paths.dashboard : `${paths.dashboard}#code=${code}`
    const dashboard = place === "on" ? path : undefined
    const storesMails = mail.smtpUrl === undefined
    const body = bodyOf({ dashboard, dataDir, hasDemo: demoGames, storesMails })
    return plainPage({ title: "Player backend", style, body })
  })
})

/** The route. In production it leads to the dashboard, where that is on this port. */
export const StartPage = Layer.unwrap(
  Effect.gen(function* () {
    const { dashboard, production } = yield* Settings
    if (!production) return HttpRouter.add("GET", "/", yield* developmentPage)
    if (dashboard !== "on") return Layer.empty
    return HttpRouter.add("GET", "/", HttpServerResponse.redirect(paths.dashboard))
  })
)
