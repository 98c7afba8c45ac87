/** HTTP requests to the API, typed by the endpoints for players. */
import { ClientError, fromWire, isRecord, jsonText } from "./errors.ts"
import type { Log } from "./log.ts"
import type { PathValues } from "./path-values.ts"
import { type Timers, withTimeout } from "./timers.ts"
import type { Endpoints } from "./wire.ts"

/** `METHOD /path` of an endpoint for players. */
export type Route = keyof Endpoints

/** The values of a path come from `inPath`. */
type PathOf<E> = E extends { readonly params: infer Params }
  ? { readonly params: PathValues<Params> }
  : unknown

/** What an endpoint takes: the values of its path, its query and its body. */
export type Input<R extends Route> = Omit<Endpoints[R], "response" | "params"> &
  PathOf<Endpoints[R]> & {
    /** The access token. Without one, the request sends only the key. */
    readonly token?: string
    readonly headers?: Readonly<Record<string, string>>
  }

export type Answer<R extends Route> = Endpoints[R]["response"]

/** Timeout of a request. */
const requestMillis = 10_000

interface HttpOptions {
  readonly base: URL
  readonly key: string
  readonly fetch: typeof globalThis.fetch
  readonly timers: Timers
  readonly log: Log
}

interface Parts {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The address of a path below the base URL. */
export const urlOf = (base: URL, path: string): URL => {
  const url = new URL(base)
  url.pathname = base.pathname.replace(/\/$/, "") + path
  return url
}

export class Http {
  readonly #options: HttpOptions

  constructor(options: HttpOptions) {
    this.#options = options
  }

  /** Sends a request and returns the body of the response. */
  async request<R extends Route>(route: R, input: Input<R>): Promise<Answer<R>> {
    const { log, timers } = this.#options
    const started = timers.elapsed()
    const aborter = new AbortController()
    const timedOut = () => {
      aborter.abort()
      return new ClientError("timed_out", `No answer to ${route} within 10 seconds.`)
    }
    try {
      const sent = this.#send(route, input, aborter.signal)
      const answer = await withTimeout(timers, sent, requestMillis, timedOut)
      log("http", route, `${Math.round(timers.elapsed() - started)} ms`)
      // The definitions of the service promise this form; fields may be added.
      return answer as Answer<R>
    } catch (error) {
      log("http", route, error)
      throw error
    }
  }

  async #send(route: string, parts: Parts, signal: AbortSignal): Promise<unknown> {
    const { base, fetch, key } = this.#options
    const { body, params = {}, query = {}, token } = parts
    const [method = "", path = ""] = route.split(" ")
    const url = urlOf(
      base,
      path.replace(/\{(\w+)\}/g, (_, name: string) => String(params[name]))
    )
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    const headers: Record<string, string> = { "X-Svc-Key": key, ...parts.headers }
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`
    const init: RequestInit = { method, headers, signal }
    if (body !== undefined) {
      headers["content-type"] = "application/json"
      init.body = jsonText("invalid_request", body)
    }
    const response = await fetch(url, init).catch((cause: unknown) => {
      const message = `Failed to reach ${url.origin}. Check the connection and baseUrl.`
      throw new ClientError("network_error", message, undefined, cause)
    })
    const answer: unknown = await response.json().catch(() => undefined)
    if (response.ok && isRecord(answer)) return answer
    const message = `${url.pathname} answered ${response.status} without the service's JSON.`
    const error = isRecord(answer) ? fromWire(answer["error"]) : undefined
    throw error ?? new ClientError("unreadable_answer", message)
  }
}
