/** Options and events of a client. */
import type { ConnectionStatus } from "./connection.ts"
import type { Log } from "./log.ts"
import type { WebSocketClass } from "./socket.ts"
import type { SessionStorage } from "./storage.ts"
import type { Timers } from "./timers.ts"
import type { Warn } from "./wire.ts"

/** Options of `createClient`. */
export interface ClientOptions {
  /** Base URL of the service, without an API path: `https://api.example.com`. */
  readonly baseUrl: string
  /** The environment's publishable key, `pk_...`. Secret keys stay on servers. */
  readonly key: string
  /**
   * Whether a call that needs a player creates a guest when no session is stored. Default: true. If
   * false, such calls reject with `signed_out`. After a sign-out, the client never creates guests
   * implicitly.
   */
  readonly autoGuest?: boolean
  /** Storage of the session. Default: the page's `localStorage`, else memory. */
  readonly storage?: SessionStorage
  /** WebSocket class, for platforms without a global one. */
  readonly WebSocket?: WebSocketClass
  /** Fetch function, for platforms without a global one and for tests. */
  readonly fetch?: typeof globalThis.fetch
  /**
   * Logs requests, frames and changes of the connection: `true` to the console, or to a function. Frames
   * contain what players write; the log has no tokens.
   */
  readonly debug?: boolean | Log
  /** Clock and timers, for tests on virtual time. */
  readonly timers?: Timers
}

/** Events of the client, beside those of rooms and channels. */
export interface ClientEvents {
  /** State of the connection: `online`, `connecting`, or `offline` until a call needs it. */
  readonly status: ConnectionStatus
  /** The client could not send a message, or the service refused it. Rooms emit it too. */
  readonly warn: Warn
}
