/**
 * Typed client of the player backend, for browsers and Node: sign-in, rooms, matchmaking, channels,
 * saves and stats. Its types come from the API definitions in `rpc/`. Calls return promises that reject
 * with the error classes of those definitions; use {@link isError} to distinguish them.
 *
 * @example
 * const client = createClient({ baseUrl: "http://localhost:8080", key: "pk_..." })
 * const room = await client.rooms.quickMatch("default")
 * room.on("message", ({ type, data }) => play(type, data))
 * room.send("move", { x: 1 })
 */
import { Clock, Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import type { Definitions } from "#rpc/config-document/definitions"
import { closeCodes, ping, type Warn } from "#rpc/realtime"
import { type Ages, makeAges } from "./ages.ts"
import { type Channels, LiveChannels } from "./channels.ts"
import { Connection, type ConnectionStatus } from "./connection.ts"
import { type Email, makeEmail } from "./email.ts"
import { Emitter, type Unsubscribe } from "./emitter.ts"
import { type Http, makeHttp } from "./http.ts"
import { type Identities, makeIdentities } from "./identities.ts"
import { makeNews, type News } from "./news.ts"
import { makeOAuth, type OAuth } from "./oauth.ts"
import { makePlayers, type Players } from "./players.ts"
import { LiveRooms, type Rooms } from "./rooms.ts"
import { makeSaves, type Saves } from "./saves.ts"
import { makeSessions, type Sessions } from "./sessions.ts"
import type { Closed, WebSocketClass } from "./socket.ts"
import { makeStats, type Stats } from "./stats.ts"
import { defaultStorage, type SessionStorage, storedText } from "./storage.ts"
import { Tokens } from "./tokens.ts"
import { makeTransfer, type Transfer } from "./transfer.ts"

export type { Ages } from "./ages.ts"
export type { Channel, ChannelClosed, ChannelEvents } from "./channel.ts"
export type { Channels } from "./channels.ts"
export type { ConnectionStatus } from "./connection.ts"
export type { Email, MailLink } from "./email.ts"
export type { Unsubscribe } from "./emitter.ts"
export {
  Disconnected,
  NetworkError,
  OAuthFailed,
  Overloaded,
  PopupBlocked,
  PopupClosed,
  ServiceError,
  SignedOut,
  TimedOut
} from "./errors.ts"
export { type ClientError, isError } from "./failures.ts"
export type { Credentials, MailOptions, Profile, RoomFilter, SaveVersion } from "./http.ts"
export type { Identities } from "./identities.ts"
export type { News } from "./news.ts"
export type { OAuth, ProviderSignIn, StartOptions } from "./oauth.ts"
export type { Players } from "./players.ts"
export { returnToOpener } from "./oauth-callback.ts"
export type {
  ConfirmedChanges,
  Room,
  RoomClosed,
  RoomEvents,
  RtcServers,
  SendOptions
} from "./room.ts"
export type { QuickMatchOptions, Rooms } from "./rooms.ts"
export type { Saves } from "./saves.ts"
export type { Sessions } from "./sessions.ts"
export type { ReportOptions, Stats } from "./stats.ts"
export type { WebSocketClass, WebSocketLike } from "./socket.ts"
export { memoryStorage, type SessionStorage } from "./storage.ts"
export type { Transfer } from "./transfer.ts"
export type { ProviderOptions } from "./oauth-redirect.ts"

/** Options of {@link createClient}. */
export interface ClientOptions {
  /** Base URL of the service, without an API path: `https://api.example.com`. */
  readonly baseUrl: string
  /** The environment's publishable key, `pk_...`. Secret keys stay on servers. */
  readonly key: string
  /**
   * Whether a call that needs a player creates a guest when no session is stored. Default: true. If
   * false, such calls reject with `signed_out`. After a sign-out, guests are never created implicitly.
   */
  readonly autoGuest?: boolean
  /** Where to store the session. Default: the page's `localStorage`, else memory. */
  readonly storage?: SessionStorage
  /** WebSocket class, for platforms without a global one. */
  readonly WebSocket?: WebSocketClass
  /** Fetch function, for platforms without a global one and for tests. */
  readonly fetch?: typeof globalThis.fetch
}

/** Events of the client, beside those of rooms and channels. */
export interface ClientEvents {
  /** The connection is `open`, `connecting`, or `closed` until a call needs it. */
  readonly status: ConnectionStatus
  /** A message could not be sent, or the service refused it. Rooms emit it too. */
  readonly warn: Warn
}

/** A client of one environment. */
export interface Client {
  readonly sessions: Sessions
  readonly email: Email
  readonly oauth: OAuth
  readonly transfer: Transfer
  readonly players: Players
  readonly identities: Identities
  readonly ages: Ages
  readonly news: News
  readonly rooms: Rooms
  readonly channels: Channels
  readonly saves: Saves
  readonly stats: Stats

  /**
   * Returns the public part of the environment's config: modes, stats, features. Needs no player. The
   * browser caches it for a minute.
   *
   * @example
   * const { modes } = await client.definitions()
   */
  definitions(): Promise<Definitions>

  /** Status of the realtime connection, which opens when a call first needs it. */
  readonly status: ConnectionStatus

  /**
   * Adds a listener and returns a function that removes it.
   *
   * @example
   * client.on("status", (status) => banner.hidden = status !== "connecting")
   */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (event: ClientEvents[Name]) => void
  ): Unsubscribe

  /**
   * Measures the round trip in milliseconds; `at` is the service's clock in Unix milliseconds. Opens
   * the connection if needed.
   *
   * @example
   * const { roundTripMillis, at } = await client.ping()
   */
  ping(): Promise<{ readonly roundTripMillis: number; readonly at: number }>

  /**
   * Closes the connection. The service keeps the player's seat for the grace period (30 seconds by
   * default). The next call that needs the connection reopens it.
   *
   * @example
   * addEventListener("pagehide", () => client.close())
   */
  close(): void
}

const validatedUrl = ({ baseUrl, key }: ClientOptions): URL => {
  const url = URL.parse(baseUrl)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(`baseUrl must be an http or https URL, not "${baseUrl}"`)
  }
  if (!key.startsWith("pk_")) throw new TypeError("key must be a publishable key, pk_...")
  return url
}

const socketUrl = (base: URL): string => {
  const url = new URL(base)
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:"
  url.pathname = `${base.pathname.replace(/\/$/, "")}/v1/realtime`
  return url.href
}

/**
 * Makes a client in an effect, for Effect programs. It uses their clock and randomness, so tests can run
 * on virtual time.
 */
export const makeClient = Effect.fnUntraced(function* (options: ClientOptions) {
  const { autoGuest = true, baseUrl, key, storage = defaultStorage() } = options
  const base = validatedUrl(options)
  const fetch = options.fetch ?? globalThis.fetch
  const context = yield* Effect.context()
  const provided = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.provideService(effect, FetchHttpClient.Fetch, (input, init) => fetch(input, init))
  const runPromise = Effect.runPromiseWith(context)
  const runFork = Effect.runForkWith(context)
  const run = <A, E>(effect: Effect.Effect<A, E>) => runPromise(provided(effect))
  const fork = (effect: Effect.Effect<void>) => runFork(provided(effect))

  const name = `player-backend:${key}`
  const http = yield* makeHttp({ baseUrl, key })
  const stored = storedText(storage, name)
  const tokens = new Tokens({ http, stored, name, autoGuest, run: fork })
  const emitter = new Emitter<ClientEvents>()

  const status = (next: ConnectionStatus, closed: Closed | undefined) => {
    rooms.status(next, closed)
    channels.status(next, closed)
    emitter.emit("status", next)
    // The player may have changed while the socket opened.
    if (next === "open") connection.setPlayer(tokens.player)
    // The session may have ended. A refresh finds out, and then signs the player out.
    if (next === "closed" && closed?.code === closeCodes.unauthorized) {
      fork(Effect.ignore(tokens.resume()))
    }
  }
  const connection = new Connection({
    url: socketUrl(base),
    key,
    WebSocket: options.WebSocket ?? globalThis.WebSocket,
    tokens,
    run: fork,
    events: {
      event: (event) => {
        rooms.receive(event)
        channels.receive(event)
        if (event.t === "warn") emitter.emit("warn", event)
      },
      unknownEvent: (type) => rooms.resync(type),
      welcomed: Effect.suspend(() =>
        Effect.all([rooms.welcomed(), channels.welcomed()], { concurrency: 2, discard: true })
      ),
      status
    }
  })
  const rooms = new LiveRooms({ connection, run }, http)
  const channels = new LiveChannels({ connection, run })
  tokens.changes.on("change", (player) => connection.setPlayer(player))

  const client: Client = {
    ...playerApis(http, tokens, run, name),
    rooms,
    channels,
    definitions: () => run(readDefinitions(http)),
    get status() {
      return connection.status
    },
    on: (event, listener) => emitter.on(event, listener),
    ping: () => run(measureRoundTrip(connection)),
    close: () => connection.close("closed")
  }
  return client
})

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

/** HTTP calls by, or about, the player. */
const playerApis = (http: Http, tokens: Tokens, run: Run, name: string) => ({
  sessions: makeSessions(http, tokens, run),
  email: makeEmail(http, tokens, run),
  oauth: makeOAuth(http, tokens, run, name),
  transfer: makeTransfer(http, tokens, run),
  players: makePlayers(http, tokens, run),
  identities: makeIdentities(http, tokens, run),
  ages: makeAges(http, tokens, run),
  news: makeNews(http, tokens, run),
  saves: makeSaves(http, tokens, run),
  stats: makeStats(http, tokens, run)
})

const readDefinitions = (http: Http) =>
  Effect.flatMap(http.definitions, (answer) =>
    // The request has no If-None-Match, so the service cannot answer 304.
    answer === undefined ? Effect.die("304 without If-None-Match") : Effect.succeed(answer.body)
  )

const measureRoundTrip = Effect.fnUntraced(function* (connection: Connection) {
  yield* connection.open()
  const sent = yield* Clock.currentTimeMillis
  const { at } = yield* connection.request(ping, undefined)
  return { at, roundTripMillis: (yield* Clock.currentTimeMillis) - sent }
})

/**
 * Makes a client. Nothing happens before the first call: no request, no socket, no guest. Throws a
 * `TypeError` if `baseUrl` is no http(s) URL or `key` is no publishable key.
 *
 * @example
 * const client = createClient({ baseUrl: "http://localhost:8080", key: "pk_..." })
 */
export const createClient = (options: ClientOptions): Client => Effect.runSync(makeClient(options))
