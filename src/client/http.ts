/** HTTP requests to the API, typed by the endpoints for players. */
import { ClientError, fromWire, isRecord, isWireError } from "./errors.ts"
import type { Log } from "./log.ts"
import { type Timers, withTimeout } from "./timers.ts"
import type { Endpoints } from "./wire.ts"

/** `METHOD /path` of an endpoint for players. */
export type Route = keyof Endpoints

/** What an endpoint takes: the values of its path, its query and its body. */
export type Input<R extends Route> = Omit<Endpoints[R], "response"> & {
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

/** Encodes a value as one segment of a path. Dots alone would lead to another endpoint. */
const segment = (name: string, value: string): string => {
  if (!/^\.*$/.test(value)) return encodeURIComponent(value)
  const message = `${name} must be text other than dots, not "${value}".`
  throw new ClientError("invalid_request", message, { issues: [{ path: name, message }] })
}

const jsonOf = (body: unknown): string => {
  try {
    return JSON.stringify(body)
  } catch (cause) {
    const message = `The value is not JSON: ${String(cause)}`
    throw new ClientError("invalid_request", message, { issues: [{ path: "", message }] }, cause)
  }
}

export class Http {
  readonly #options: HttpOptions

  constructor(options: HttpOptions) {
    this.#options = options
  }

  /** Sends a request and returns the body of the response. */
  async request<R extends Route>(route: R, input: Input<R>): Promise<Answer<R>> {
    const parts: Parts = input
    const space = route.indexOf(" ")
    const init = this.#init(route.slice(0, space), parts)
    const { log, timers } = this.#options
    const started = timers.elapsed()
    const aborter = new AbortController()
    const timedOut = () => {
      aborter.abort()
      return new ClientError("timed_out", `No answer to ${route} within 10 seconds.`)
    }
    const sent = this.#send(this.#url(route.slice(space + 1), parts), {
      ...init,
      signal: aborter.signal
    })
    try {
      const answer = await withTimeout(timers, sent, requestMillis, timedOut)
      log("http", route, `${Math.round(timers.elapsed() - started)} ms`)
      // The definitions of the service promise this form; fields may be added.
      return answer as Answer<R>
    } catch (error) {
      log("http", route, error)
      throw error
    }
  }

  #url(path: string, { params = {}, query = {} }: Parts): URL {
    const { base } = this.#options
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
      segment(name, String(params[name]))
    )
    const url = new URL(base)
    url.pathname = base.pathname.replace(/\/$/, "") + filled
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    return url
  }

  #init(method: string, { body, headers, token }: Parts): RequestInit {
    return {
      method,
      headers: {
        "X-Svc-Key": this.#options.key,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined ? {} : { body: jsonOf(body) })
    }
  }

  async #send(url: URL, init: RequestInit): Promise<unknown> {
    const response = await this.#options.fetch(url, init).catch((cause: unknown) => {
      const message = `Failed to reach ${url.origin}. Check the connection and baseUrl.`
      throw new ClientError("network_error", message, undefined, cause)
    })
    const body: unknown = await response.json().catch(() => undefined)
    if (response.ok && isRecord(body)) return body
    if (isRecord(body) && isWireError(body["error"])) throw fromWire(body["error"])
    const message = `${url.pathname} answered ${response.status} without the service's JSON.`
    throw new ClientError("unreadable_answer", message)
  }
}
