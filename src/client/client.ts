/**
 * The client of the player backend for games, in a browser or in Node: sign-in, rooms, matchmaking,
 * channels.
 * Promises outside, and every type from the definitions in `rpc/`. Calls reject with the error classes
 * of those definitions; {@link isError} tells them apart.
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

export interface ClientOptions {
  /** Where the service is, without a path of the interface: `https://api.example.com`. */
  readonly baseUrl: string
  /** The environment's publishable key, `pk_...`. Secret keys stay on servers. */
  readonly key: string
  /**
   * May a call that needs a player create a guest when nobody has ever signed in here? True by
   * default; otherwise such calls reject with `signed_out`. After a sign-out nobody is created
   * without being asked for.
   */
  readonly autoGuest?: boolean
  /** Where the session is kept: the page's `localStorage` where there is one, else memory. */
  readonly storage?: SessionStorage
  /** For platforms whose WebSocket is not global. */
  readonly WebSocket?: WebSocketClass
  /** For platforms whose fetch is not global, and for tests. */
  readonly fetch?: typeof globalThis.fetch
}

/** What the client tells beside what its rooms tell. */
export interface ClientEvents {
  /** The connection opened, is sought, or is over until something needs it. */
  readonly status: ConnectionStatus
  /** Something to know: a message that was not sent or not accepted. Rooms tell it too. */
  readonly warn: Warn
}

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
   * The public part of the environment's config: modes, stats, features. It needs no player, and a
   * page's own cache keeps it for a minute.
   *
   * @example
   * const { modes } = await client.definitions()
   */
  definitions(): Promise<Definitions>

  /** The state of the one realtime connection, which is opened when it is first needed. */
  readonly status: ConnectionStatus

  /**
   * Listens to the connection.
   *
   * @example
   * client.on("status", (status) => banner.hidden = status !== "connecting")
   */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (event: ClientEvents[Name]) => void
  ): Unsubscribe

  /**
   * The round trip to the service in milliseconds, and the service's clock (Unix milliseconds).
   *
   * @example
   * const { roundTripMillis, at } = await client.ping()
   */
  ping(): Promise<{ readonly roundTripMillis: number; readonly at: number }>

  /**
   * Closes the connection; the seat is kept for a while. The next call that needs it opens it again.
   *
   * @example
   * addEventListener("pagehide", () => client.close())
   */
  close(): void
}

const validatedUrl = ({ baseUrl, key }: ClientOptions): URL => {
  const url = URL.parse(baseUrl)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(`baseUrl must be a URL of http or https, not "${baseUrl}"`)
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
 * The client as an effect, for programs that are effects themselves: it lives on their clock and their
 * randomness, which is how it is tested.
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
    // The player may have changed while the socket was on its way.
    if (next === "open") connection.setPlayer(tokens.player)
    // Perhaps the session has ended: its refresh will tell, and sign the player out.
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

/** What is asked over HTTP by, or about, the player. */
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
    // Without a version of its own to name, a client is never told that nothing has changed.
    answer === undefined ? Effect.die("304 without If-None-Match") : Effect.succeed(answer.body)
  )

const measureRoundTrip = Effect.fnUntraced(function* (connection: Connection) {
  yield* connection.open()
  const sent = yield* Clock.currentTimeMillis
  const { at } = yield* connection.request(ping, undefined)
  return { at, roundTripMillis: (yield* Clock.currentTimeMillis) - sent }
})

/**
 * Makes a client. It does nothing until something is asked of it: no request, no socket, no guest.
 *
 * @example
 * const client = createClient({ baseUrl: "http://localhost:8080", key: "pk_..." })
 */
export const createClient = (options: ClientOptions): Client => Effect.runSync(makeClient(options))
