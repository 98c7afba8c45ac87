/** Route table by path: the route and the allowed methods of a request, before or without routing. */
import { FindMyWay } from "effect/http"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { Api } from "#rpc/api"
import { DashboardApi } from "#rpc/dashboard"
import { paths } from "#rpc/paths"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const

/** Router options; with room for oversized ids, so that their endpoint can refuse them with a message. */
export const routerConfig = { maxParamLength: 1024 }

/** Maps each route to its declared path. */
const routes = FindMyWay.make<string>(routerConfig)

const declare = {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint: { method, path } }: { readonly endpoint: HttpApiEndpoint.Top }) =>
    routes.on(method, `/${path.slice(1)}`, path)
}
HttpApi.reflect(Api, declare)
HttpApi.reflect(DashboardApi, declare)
for (const path of Object.values(paths)) routes.on("GET", path, path)

/** The route of a request, `/v1/rooms/:roomId`; undefined when there is none. */
export const routeOf = (method: string, url: string): string | undefined => {
  const known = methods.find((it) => it === (method === "HEAD" ? "GET" : method))
  return known === undefined ? undefined : routes.find(known, url)?.handler
}

/** The methods of a path; empty when there is no such path. */
export const methodsOf = (url: string): ReadonlyArray<string> => {
  const own: ReadonlyArray<string> = methods.filter(
    (method) => routes.find(method, url) !== undefined
  )
  if (own.length === 0) return own
  return [...own, ...(own.includes("GET") ? ["HEAD"] : []), "OPTIONS"]
}
