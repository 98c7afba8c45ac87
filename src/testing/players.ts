/**
 * Players for tests: raw HTTP requests, guests, and authenticated sockets. Works against any running
 * service, in this process or another.
 */
import { Effect, type Scope } from "effect"
import { systemTimers } from "#client/timers"
import { connectSocket, type SocketClient } from "./socket-client.ts"

/** The base URL of a service, and the keys of the environment to use. */
export interface TestTarget {
  readonly url: string
  readonly publishableKey: string
  readonly secretKey: string
}

/** A response with its parsed body. */
export interface TestResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

/** A signed-in guest. */
export interface TestPlayer {
  readonly id: string
  readonly accessToken: string
  readonly refreshToken: string
}

/** A guest with an open socket. */
export interface OnlinePlayer extends TestPlayer {
  readonly socket: SocketClient
}

/** Returns the value at a path of a JSON value, or undefined. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null ? Reflect.get(inner, key) : undefined,
    value
  )

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const isRaw = (body: unknown): body is string | Uint8Array<ArrayBuffer> =>
  typeof body === "string" || body instanceof Uint8Array

/** A request that got no response: which one, and after how long. The cause says why. */
export class RequestFailed extends Error {
  constructor(method: string, url: string, millis: number, cause: unknown) {
    const { pathname } = new URL(url)
    const causes = [cause, at(cause, "cause")].filter((it) => it instanceof Error)
    const why = causes.map(({ message }) => message).join(": ")
    super(`${method} ${pathname} got no response within ${Math.round(millis)} ms: ${why}`, {
      cause
    })
    this.name = "RequestFailed"
  }
}

/** Sends a request. A body that is neither text nor bytes is sent as JSON. */
export const request = (
  url: string,
  options: {
    readonly method?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: unknown
  } = {}
): Effect.Effect<TestResponse> =>
  Effect.promise(async () => {
    const { body, headers, method = body === undefined ? "GET" : "POST" } = options
    const start = systemTimers.elapsed()
    try {
      const response = await fetch(url, {
        method,
        headers: {
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        },
        ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) })
      })
      return {
        status: response.status,
        headers: response.headers,
        body: parse(await response.text())
      }
    } catch (cause) {
      throw new RequestFailed(method, url, systemTimers.elapsed() - start, cause)
    }
  })

const expectStatus = (response: TestResponse, status: number): Effect.Effect<TestResponse> =>
  response.status === status
    ? Effect.succeed(response)
    : Effect.die(
        new Error(`Expected ${status}: ${response.status} ${JSON.stringify(response.body)}`)
      )

/** Signs a guest in. */
export const guest = (
  { publishableKey, url }: TestTarget,
  displayName?: string
): Effect.Effect<TestPlayer> =>
  request(`${url}/v1/auth/guest`, {
    headers: { "x-svc-key": publishableKey },
    body: displayName === undefined ? {} : { displayName }
  }).pipe(
    Effect.flatMap((response) => expectStatus(response, 200)),
    Effect.map(({ body }) => ({
      id: String(at(body, "player", "id")),
      accessToken: String(at(body, "accessToken")),
      refreshToken: String(at(body, "refreshToken"))
    }))
  )

/** Opens a socket and authenticates a player. Take `welcome` from it next. */
export const authenticate = (
  { publishableKey, url }: TestTarget,
  { accessToken, id, refreshToken }: TestPlayer
): Effect.Effect<OnlinePlayer, Error, Scope.Scope> =>
  Effect.gen(function* () {
    const socket = yield* connectSocket(`${url.replace("http", "ws")}/v1/realtime`)
    yield* socket.send({ t: "auth", key: publishableKey, token: accessToken })
    return { id, accessToken, refreshToken, socket }
  })

/** Opens a socket, authenticates a player and takes `welcome`. */
export const goOnline = (
  target: TestTarget,
  player: TestPlayer
): Effect.Effect<OnlinePlayer, Error, Scope.Scope> =>
  Effect.tap(authenticate(target, player), ({ socket }) => socket.next("welcome"))

/** A new guest with an open socket. */
export const newPlayer = (
  target: TestTarget,
  displayName?: string
): Effect.Effect<OnlinePlayer, Error, Scope.Scope> =>
  Effect.flatMap(guest(target, displayName), (player) => goOnline(target, player))

/** Pushes a config document. */
export const configure = (
  { secretKey, url }: TestTarget,
  document: object
): Effect.Effect<TestResponse> =>
  request(`${url}/v1/config`, {
    method: "PUT",
    headers: { "x-svc-key": secretKey },
    body: document
  }).pipe(Effect.flatMap((response) => expectStatus(response, 200)))
