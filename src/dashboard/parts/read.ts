/** Reads of the project or environment that the address names. */
import { ask, type Response, type Route } from "../core/api.ts"
import { type Load, useLoad } from "./load.ts"
import { useCurrentView } from "./current-view.ts"

/** Interval of what changes by itself, in milliseconds. */
export const livePollMillis = 2000

/** Reads an endpoint of the project; with an interval, again and again. */
export const useRead = <R extends Route & `GET /v1/projects/:projectId/${string}`>(
  route: R,
  {
    basis = "",
    params,
    pollMillis,
    query = {}
  }: {
    readonly params?: Readonly<Record<string, string>>
    readonly query?: Readonly<Record<string, number | string | undefined>>
    readonly pollMillis?: number | undefined
    /** What the data depends on besides: another basis is another read. */
    readonly basis?: string
  } = {}
): Load<Response<R>> => {
  const current = useCurrentView()
  const all = { ...current.params, ...params }
  return useLoad(
    JSON.stringify([route, all, query, basis]),
    (signal) => ask(route, { params: all, query, signal }),
    pollMillis
  )
}
