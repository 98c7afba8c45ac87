/** The methods that a path takes, for `Allow`: what the router does not tell of a route not found. */
import { FindMyWay } from "effect/http"
import { HttpApi } from "effect/http-api"
import { Api } from "#rpc/api"

/** Pages and sockets beside the API. */
export const paths = {
  configSchema: "/v1/config/schema.json",
  docs: "/docs",
  openapi: "/openapi.json",
  realtime: "/v1/realtime",
  reset: "/-/reset",
  rpc: "/v1/rpc",
  verify: "/-/verify"
} as const

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const

const routes = FindMyWay.make<true>()

HttpApi.reflect(Api, {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint }) => routes.on(endpoint.method, `/${endpoint.path.slice(1)}`, true)
})
for (const path of Object.values(paths)) routes.on("GET", path, true)

/** The methods of a path; empty when there is no such path. */
export const methodsOf = (url: string): ReadonlyArray<string> => {
  const own: ReadonlyArray<string> = methods.filter(
    (method) => routes.find(method, url) !== undefined
  )
  if (own.length === 0) return own
  return [...own, ...(own.includes("GET") ? ["HEAD"] : []), "OPTIONS"]
}
