/** Calls of the environment's functions. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import { ClientError, fromWire, isRecord } from "./errors.ts"

export interface FunctionCallOptions {
  /** Default: `POST` with a body, else `GET`. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the call goes without a player. It then sends no token, and creates no guest. */
  readonly anonymous?: boolean
  /** Milliseconds until the call rejects with `timed_out`; at most 23 days. Default: 30,000. */
  readonly millis?: number
}

export interface Functions {
  /**
   * Returns the address of a path of the functions, for requests that `call` does not make: WebSockets,
   * streams, files. Needs no request.
   *
   * @example
   * const socket = new WebSocket(client.functions.url("chat").replace("http", "ws"))
   */
  url(path?: string): string

  /**
   * Calls a function with the player's token and the body as JSON, and returns its JSON, or the text of
   * another response. Names in the path must be encoded. The function reads the player's id from the
   * header `Svc-Player`. Rejects with the `code` of an error in the form of the service, the function's
   * own ones too, and with `function_refused` for any other status than 2xx.
   *
   * @example
   * const { place } = await client.functions.call<{ place: number }>("scores", { score: 120 })
   * const top = await client.functions.call<Score[]>("scores?limit=10")
   */
  call<Result = unknown>(
    path: string,
    body?: unknown,
    options?: FunctionCallOptions
  ): Promise<Result>
}

/** Reads the JSON or the text of a response; throws the error of a refusal. */
const read = async (response: Response): Promise<{ readonly result: unknown } | undefined> => {
  // Not `application/x-ndjson`, which is a text of many values.
  const isJson = /[/+]json\b/.test(`${response.headers.get("content-type")}`)
  const result: unknown = await response[isJson ? "json" : "text"]().catch(() => undefined)
  if (response.ok) return result === undefined ? undefined : { result }
  const { status } = response
  throw (
    (isRecord(result) ? fromWire(result["error"]) : undefined) ??
    new ClientError("function_refused", `Refused: ${status}`, { status, body: result })
  )
}

/**
 * Segments that begin with two dots, which may lead to other paths; and what an encoded path has not:
 * blanks and control characters, which `fetch` drops, and braces, which stand for values here.
 */
const notInPath = /(^|[/\\])(\.|%2e){2}|[^!-z|~-\uffff]/i

/** Timers of browsers wait at most 24 days, and not at all for longer. */
const longestMillis = 2e9

export const functions: Module<Functions> = ({ http, tokens }) => {
  const pathOf = (path: string): string => {
    if (notInPath.test(path)) throw new TypeError(`Encode the path: ${path}`)
    return `/fn/${http.key}/${path.replace(/^\//, "")}`
  }
  return {
    url: (path = "") => http.base + pathOf(path),
    call: async <Result>(
      path: string,
      body?: unknown,
      { anonymous, method, millis = 30_000, headers }: FunctionCallOptions = {}
    ) => {
      const route = `${method ?? (body === undefined ? "GET" : "POST")} ${pathOf(path)}`
      const parts = {
        body,
        // Names in lower case: one that the client sets too is replaced, and not joined.
        headers: Object.fromEntries(new Headers(headers)),
        millis: Math.min(millis, longestMillis),
        read
      }
      const send = (token?: string) => http.request(route, { ...parts, token })
      const { result } = await (anonymous ? send() : authorized(tokens, send))
      // The caller says what its function returns.
      return result as Result
    }
  }
}
