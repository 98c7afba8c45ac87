/** HTTP requests to the API, typed by the endpoints for players. */
import { ClientError, fromWire, isRecord, jsonText } from "./errors.ts"
import type { Log } from "./log.ts"
import type { PathValues } from "./path-values.ts"
import { type Timers, withTimeout } from "./timers.ts"
import type { Endpoints } from "./wire.ts"

/** `METHOD /path` of an endpoint for players. */
export type Route = keyof Endpoints

/** Path values of an endpoint, which come from `inPath`. */
type PathOf<E> = E extends { readonly params: infer Params }
  ? { readonly params: PathValues<Params> }
  : unknown

/** Input of an endpoint: the values of its path, its query and its body. */
export type Input<R extends Route> = Omit<Endpoints[R], "response" | "params"> &
  PathOf<Endpoints[R]> & {
    /** The access token. Without one, the request sends only the key. */
    readonly token?: string | undefined
    readonly headers?: Readonly<Record<string, string>>
  }

export type ResponseOf<R extends Route> = Endpoints[R]["response"]

/** Timeout of a request. */
const requestMillis = 10_000

interface HttpOptions {
  /** The base URL, without a slash at its end. */
  readonly base: string
  readonly key: string
  readonly fetch: typeof globalThis.fetch
  readonly timers: Timers
  readonly log: Log
}

interface Parts {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Timeout in milliseconds. */
  readonly millis?: number
}

interface Reader<A> {
  /** Reads a response; undefined for one that it cannot read. */
  readonly read: (response: Response) => Promise<A | undefined>
}

export interface Http {
  /** The base URL, without a slash at its end. */
  readonly base: string
  readonly key: string
  /** Sends a request and returns the body of the response. */
  request<R extends Route>(route: R, input: Input<R>): Promise<ResponseOf<R>>
  /** The same for a path that is not of the API, with its own reader. */
  request<A extends object>(route: string, parts: Parts & Reader<A>): Promise<A>
}

export const makeHttp = ({ base, fetch, key, log, timers }: HttpOptions): Http => {
  const send = async (
    route: string,
    parts: Parts & Partial<Reader<object>>,
    signal: AbortSignal
  ): Promise<unknown> => {
    const { body, params = {}, query = {}, token } = parts
    const [method = "", template = ""] = route.split(" ")
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => String(params[name]))
    // Without URL, which on React Native is incomplete.
    const search = Object.entries(query)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
      .join("&")
    const headers = {
      "X-Svc-Key": key,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...parts.headers
    }
    const text = body === undefined ? null : jsonText("invalid_request", body)
    const init = { method, headers, signal, body: text }
    const response = await fetch(`${base}${path}${search && `?${search}`}`, init).catch(
      (cause: unknown) => {
        const message = `Failed to reach ${base}: check baseUrl.`
        throw new ClientError("network_error", message, undefined, cause)
      }
    )
    const json = await (parts.read?.(response) ?? response.json().catch(() => undefined))
    if (response.ok && isRecord(json)) return json
    const message = `${path} answered ${response.status} and no JSON: check baseUrl.`
    const error = isRecord(json) ? fromWire(json["error"]) : undefined
    throw error ?? new ClientError("unreadable_response", message)
  }

  return {
    base,
    key,
    request: <A>(route: string, parts: Parts & Partial<Reader<object>>) => {
      const aborter = new AbortController()
      const timedOut = () => {
        aborter.abort()
        return new ClientError("timed_out", `No response to ${route}.`)
      }
      const sent = send(route, parts, aborter.signal)
      const result = withTimeout(timers, sent, parts.millis ?? requestMillis, timedOut)
      result.then(
        () => log("http", route),
        (error: unknown) => log("http", route, error)
      )
      // The definitions of the service promise this form; fields may be added.
      return result as Promise<A>
    }
  }
}
