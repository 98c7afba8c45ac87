/**
 * `GET /-/served-host?domain=<host>`: 200 if the service serves an app at a host, else 404. A proxy
 * calls it before it requests a certificate for the host.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { paths } from "#rpc/paths"
import { hostOf } from "./addresses.ts"
import { HostedApps } from "./apps.ts"

const makeHandler = Effect.gen(function* () {
  const apps = yield* HostedApps
  return Effect.gen(function* () {
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const host = hostOf(new URL(url, "http://service").searchParams.get("domain") ?? "")
    const app = apps.isAppHost(host) ? (apps.known(host) ?? (yield* apps.load(host))) : "unknown"
    // Anybody can name versions that do not exist, and each certificate counts.
    const isServed = app !== "unknown" && !app.isAbsentVersion
    return HttpServerResponse.text(isServed ? "An app is here.\n" : "No app is here.\n", {
      status: isServed ? 200 : 404,
      headers: { "cache-control": "no-store" }
    })
  })
})

export const ServedHostRoute = Layer.unwrap(
  Effect.map(makeHandler, (handler) => HttpRouter.add("GET", paths.servedHost, handler))
)
