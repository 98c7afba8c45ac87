/** Composes a client of the modules that a game uses. */
import type { GameClock } from "./clock.ts"
import type { ConnectionStatus } from "./connection.ts"
import { connectEvents, type Core, makeCore } from "./core.ts"
import type { ListenerOptions, Unsubscribe } from "./emitter.ts"
import type { ClientEvents, ClientOptions } from "./options.ts"
import type { Definitions } from "./wire.ts"

/** The part of every client. */
export interface ClientBase {
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

  /** The service's clock. */
  readonly clock: GameClock

  /** The last measured round trip in whole milliseconds; null before the first connection. */
  readonly latency: number | null

  /**
   * Adds a listener and returns a function that removes it, as does aborting the option `signal`.
   *
   * @example
   * client.on("status", (status) => banner.hidden = status !== "connecting")
   */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (event: ClientEvents[Name]) => void,
    options?: ListenerOptions
  ): Unsubscribe

  /**
   * Measures the round trip in whole milliseconds; `at` is the service's clock in Unix milliseconds. Opens
   * the connection if needed.
   *
   * @example
   * const { roundTripMillis, at } = await client.ping()
   */
  ping(): Promise<{ readonly roundTripMillis: number; readonly at: number }>

  /**
   * Closes the connection and removes the client's listeners from the page. The service keeps the
   * player's seat for the grace period (30 seconds by default). The client stays usable: the next call
   * that needs them opens the connection, or adds the listeners, again.
   *
   * @example
   * addEventListener("pagehide", () => client.close())
   */
  close(): void
}

/** A part of the client, made from the core that all parts share. */
export type Module<A = unknown> = (core: Core) => A

/** Results of modules, by their names. */
export type Composed<Modules> = {
  readonly [Name in keyof Modules]: Modules[Name] extends Module<infer A> ? A : never
}

/** Timeout of a measured round trip. */
const pingMillis = 10_000

/**
 * Makes a client of some modules only: a bundler then leaves out the others.
 *
 * @example
 * const client = compose({ baseUrl, key: "pk_..." }, { sessions, rooms })
 * const room = await client.rooms.quickMatch("default")
 */
export const compose = <Modules extends Readonly<Record<string, Module>>>(
  options: ClientOptions,
  modules: Modules
): ClientBase & Composed<Modules> => {
  const core = makeCore(options)
  const { clock, connection, events, http, page } = core
  const base: ClientBase = {
    definitions: () => http.request("GET /v1/gamedata/definitions", {}),
    get status() {
      return connection.status
    },
    clock,
    get latency() {
      return clock.latency
    },
    on: events.on,
    ping: async () => {
      await connection.open()
      return connection.ping(pingMillis)
    },
    close: () => {
      connection.close("closed")
      page.remove()
    }
  }
  // Each module makes the part of its name.
  for (const name in modules) Object.assign(base, { [name]: modules[name]?.(core) })
  connectEvents(core)
  return base as ClientBase & Composed<Modules>
}
