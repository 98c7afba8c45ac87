/** Reads of the environment that the address names. */
import { ask, type Response, type Route } from "../core/api.ts"
import { type Load, useLoad } from "./load.ts"
import { useCurrentView } from "./current-view.ts"

/** Interval of what changes by itself, in milliseconds. */
export const livePollMillis = 2000

/** Reads an endpoint of the environment; with an interval, again and again. */
export const useRead = <R extends Route & `GET /v1/projects/:projectId/environments/:env${string}`>(
  route: R,
  {
    pollMillis,
    query = {}
  }: {
    readonly pollMillis?: number
    readonly query?: Readonly<Record<string, number | string>>
  } = {}
): Load<Response<R>> => {
  const { env, params, project } = useCurrentView()
  return useLoad(
    `${project.id}/${env}/${route}`,
    (signal) => ask(route, { params, query, signal }),
    pollMillis
  )
}
