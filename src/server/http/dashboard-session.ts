/**
 * Session cookie of the dashboard. It holds the developer's token, which scripts cannot read. A request
 * may use it only if it carries the dashboard's header and does not come from another origin.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import { HttpServerResponse, type HttpServerRequest } from "effect/http"
import { dashboardHeader } from "#rpc/dashboard"
import { developerSessions } from "#server/features/developers/sessions"
import { Settings } from "#server/platform/settings/settings"

type Request = HttpServerRequest.HttpServerRequest

/**
 * Browsers refuse the `__Host-` prefix over plain http, or accept it only for some local hosts. Cookies
 * do not distinguish ports, so there the name has the port: two services on a laptop keep two sessions.
 */
export const cookieName = (baseUrl: string, port: number): string =>
  baseUrl.startsWith("https:") ? "__Host-svc" : `svc-${port}`

/** Whether a request comes from a page of this very origin, as far as the browser says. */
const isSameOrigin = ({ headers }: Request): boolean => {
  const { host, origin, "sec-fetch-site": site = "same-origin" } = headers
  const sender = origin === undefined ? host : URL.parse(origin)?.host
  return headers[dashboardHeader] !== undefined && site === "same-origin" && sender === host
}

/** The dashboard's rules for a request, under the settings of this process. */
export const makeDashboardSession = Effect.map(Settings, ({ baseUrl, dashboard, port }) => {
  const secure = baseUrl.startsWith("https:")
  const name = cookieName(baseUrl, port)
  const options = { httpOnly: true, path: "/", sameSite: "strict", secure } as const
  /** Whether the port on which this request arrived serves the dashboard. */
  const isServed = (request: Request): boolean =>
    dashboard === "on" ||
    (dashboard !== "off" &&
      NodeHttpServerRequest.toIncomingMessage(request).socket.localPort === dashboard)
  const isAllowed = (request: Request): boolean => isServed(request) && isSameOrigin(request)
  return {
    isServed,
    isAllowed,
    /** Returns the token of the cookie, if the request may use it. */
    tokenOf: (request: Request): string | undefined =>
      isAllowed(request) ? request.cookies[name] : undefined,
    withToken: (response: HttpServerResponse.HttpServerResponse, token: string) =>
      HttpServerResponse.setCookieUnsafe(response, name, token, {
        ...options,
        maxAge: `${developerSessions.sessionSeconds} seconds`
      }),
    withoutToken: (response: HttpServerResponse.HttpServerResponse) =>
      HttpServerResponse.setCookieUnsafe(response, name, "", { ...options, maxAge: 0 })
  }
})
