/** The routes by path: what the router does not tell of one not found, or before it is. */
import { FindMyWay } from "effect/http"
import { HttpApi } from "effect/http-api"
import { Api } from "#rpc/api"
import { paths } from "#rpc/paths"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const

/** How the routes are read, here and by the router: an id that is too long is refused in words. */
export const routerConfig = { maxParamLength: 1024 }

/** Each with its path as it was declared. */
const routes = FindMyWay.make<string>(routerConfig)

HttpApi.reflect(Api, {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint: { method, path } }) => routes.on(method, `/${path.slice(1)}`, path)
})
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
