/**
 * The service's API for the dashboard: one function, with the types of the definitions. The session is in
 * a cookie that this code cannot read; the header shows that a page of the dashboard asks.
 */
import type { HttpApi, HttpApiGroup } from "effect/http-api"
import type { Api } from "#rpc/api"
import type { DashboardApi } from "#rpc/dashboard"
import { texts } from "./texts.ts"

type GroupsOf<A> = A extends HttpApi.HttpApi<infer _, infer Groups> ? Groups : never
type Endpoint = HttpApiGroup.Endpoints<GroupsOf<typeof Api> | GroupsOf<typeof DashboardApi>>
type RouteOf<E> = E extends {
  readonly method: infer M extends string
  readonly path: infer P extends string
}
  ? `${M} ${P}`
  : never

/** `METHOD /path` of every endpoint. */
export type Route = RouteOf<Endpoint>

type EndpointOf<R extends Route> = R extends `${infer M} ${infer P}`
  ? Extract<Endpoint, { readonly method: M; readonly path: P }>
  : never

/**
 * Type of a schema's values. Every value of a body has the same form on the wire as in the
 * definitions.
 */
type TypeOf<S> = S extends { readonly Type: infer T } ? T : unknown

type SuccessOf<E> = E extends { readonly "~Success": infer S } ? TypeOf<S> : unknown
type PayloadOf<E> = E extends { readonly "~Payload": infer S } ? TypeOf<S> : unknown

/** The body of a successful response. */
export type Response<R extends Route> = SuccessOf<EndpointOf<R>>

interface Request<R extends Route> {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: PayloadOf<EndpointOf<R>>
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

interface Problem {
  readonly path: string
  readonly message: string
}

/** A refused or failed request. `code` is `network` where no response came. */
export class ApiError extends Error {
  readonly code: string
  readonly status: number
  readonly requestId: string | undefined
  readonly details: Readonly<Record<string, unknown>>

  constructor(status: number, requestId: string | undefined, body: unknown) {
    const { code, details, message } = errorOf(body)
    super(message)
    this.name = "ApiError"
    this.code = code
    this.status = status
    this.requestId = requestId
    this.details = details
  }

  /** Problems of the request, by field. */
  get issues(): ReadonlyArray<Problem> {
    const { issues } = this.details
    return Array.isArray(issues) ? issues.filter(isProblem) : []
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const isProblem = (value: unknown): value is Problem =>
  isObject(value) && typeof value["path"] === "string" && typeof value["message"] === "string"

const errorOf = (body: unknown) => {
  const error = isObject(body) && isObject(body["error"]) ? body["error"] : {}
  const { code, details, message } = error
  return {
    code: typeof code === "string" ? code : "network",
    message: typeof message === "string" ? message : texts.errors.network,
    details: isObject(details) ? details : {}
  }
}

const urlOf = (
  route: string,
  { params = {}, query = {} }: Pick<Request<Route>, "params" | "query">
): string => {
  const path = route
    .slice(route.indexOf(" ") + 1)
    .replace(/(?<=.)\/$/, "")
    .replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""))
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, `${value}`]]
  )
  return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs).toString()}`
}

/** Runs when the session has ended. */
export const onSignedOut: { run: () => void } = { run: () => undefined }

const parsed = async (response: globalThis.Response): Promise<unknown> => {
  const text = await response.text()
  try {
    return text === "" ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A response with its entity tag. */
export interface Tagged<R extends Route> {
  readonly body: Response<R>
  readonly etag: string | undefined
}

/** Sends a request and returns its response unread; rejects with {@link ApiError}. */
const send = async <R extends Route>(
  route: R,
  request: Request<R>
): Promise<globalThis.Response> => {
  const { body, headers, signal } = request
  const response = await fetch(urlOf(route, request), {
    method: route.slice(0, route.indexOf(" ")),
    credentials: "same-origin",
    headers: {
      "x-svc-dashboard": "1",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal })
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error
    throw new ApiError(0, undefined, undefined)
  })
  if (response.ok) return response
  const requestId = response.headers.get("x-request-id") ?? undefined
  const error = new ApiError(response.status, requestId, await parsed(response))
  if (error.code === "unauthorized" && response.status === 401) onSignedOut.run()
  throw error
}

/** Sends a request; rejects with {@link ApiError}. */
export const askTagged = async <R extends Route>(
  route: R,
  request: Request<R> = {}
): Promise<Tagged<R>> => {
  const response = await send(route, request)
  const etag = response.headers.get("etag") ?? undefined
  return { body: (await parsed(response)) as Response<R>, etag }
}

/** Sends a request and returns the body of the response. */
export const ask = async <R extends Route>(
  route: R,
  request: Request<R> = {}
): Promise<Response<R>> => (await askTagged(route, request)).body

/** Sends a request that spends a secret, and once more by its key if the response was lost. */
export const askOnce = async <R extends Route>(
  route: R,
  request: Request<R>
): Promise<Response<R>> => {
  const key = crypto.getRandomValues(new Uint32Array(5)).join("-")
  const keyed = { ...request, headers: { ...request.headers, "idempotency-key": key } }
  try {
    return await ask(route, keyed)
  } catch (error) {
    if (error instanceof ApiError && error.status === 0) return ask(route, keyed)
    throw error
  }
}

/** Sends a request and hands over each line of its response as it comes; resolves when it ends. */
export const askLines = async <R extends Route>(
  route: R,
  request: Request<R>,
  onLines: (lines: ReadonlyArray<string>) => void
): Promise<void> => {
  const { body } = await send(route, request)
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    const lines = (rest + read.value).split("\n")
    rest = lines.pop() ?? ""
    onLines(lines.filter((line) => line !== ""))
  }
}
