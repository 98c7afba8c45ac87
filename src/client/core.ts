/**
 * Core that all modules of the client share: HTTP, tokens, the connection, clock and storage. A
 * module is a function of the core, so that a bundler leaves out the modules that a game does not
 * use.
 */
import { makeClock, type ServerClock } from "./clock.ts"
import { Connection } from "./connection.ts"
import { Emitter } from "./emitter.ts"
import { type Http, makeHttp } from "./http.ts"
import { type Log, logOf } from "./log.ts"
import type { ClientEvents, ClientOptions } from "./options.ts"
import { makePageListeners, type PageListeners } from "./page-listeners.ts"
import { defaultStorage, memoryStorage, type SessionStorage } from "./storage.ts"
import { storedSession } from "./stored-session.ts"
import { systemTimers, type Timers } from "./timers.ts"
import { Tokens } from "./tokens.ts"

/** The shared part of a client, for its modules. */
export interface Core {
  readonly http: Http
  readonly tokens: Tokens
  readonly connection: Connection
  readonly events: Emitter<ClientEvents>
  readonly timers: Timers
  readonly clock: ServerClock
  readonly log: Log
  readonly page: PageListeners
  readonly storage: SessionStorage
  /** Prefix of the client's keys in the storage. */
  readonly name: string
}

/** The base URL without slashes at its end. */
const baseOf = ({ baseUrl, key }: ClientOptions): string => {
  const isHttp = /^https?:\/\/[^/?#][^?#]*$/.test(baseUrl)
  if (!isHttp) throw new TypeError(`baseUrl is no http(s) URL: ${baseUrl}`)
  if (!key.startsWith("pk_")) throw new TypeError("key must be publishable: pk_...")
  return baseUrl.replace(/\/+$/, "")
}

const webSocketOf = ({ WebSocket = globalThis.WebSocket }: ClientOptions) => {
  if (WebSocket !== undefined) return WebSocket
  throw new TypeError("Pass the option WebSocket.")
}

export const makeCore = (options: ClientOptions): Core => {
  const { autoGuest = true, key, storage = defaultStorage(), timers = systemTimers } = options
  const base = baseOf(options)
  const log = logOf(options.debug ?? false)
  const fetch: typeof globalThis.fetch = (input, init) =>
    (options.fetch ?? globalThis.fetch)(input, init)
  const name = `player-backend:${key}`
  const page = makePageListeners()
  const stored = storedSession(storage, name)
  const clock = makeClock(timers)
  const events = new Emitter<ClientEvents>()
  const http = makeHttp({ base, key, fetch, timers, log })
  const tokens = new Tokens({ http, stored, page, name, autoGuest, timers })
  const connection = new Connection({
    url: `${base.replace("http", "ws")}/v1/realtime`,
    key,
    WebSocket: () => webSocketOf(options),
    tokens,
    timers,
    clock,
    log
  })
  tokens.changes.on("change", (player) => connection.setPlayer(player))
  return {
    http,
    tokens,
    connection,
    events,
    timers,
    clock,
    log,
    page,
    storage: storage ?? memoryStorage(),
    name
  }
}

/** Connects the events of the client. Call it after the modules, which see each change first. */
export const connectEvents = ({ connection, events }: Core): void =>
  connection.listen({
    receive: (event) => {
      if (event.t === "warn") events.emit("warn", event)
    },
    status: (status) => events.emit("status", status)
  })
