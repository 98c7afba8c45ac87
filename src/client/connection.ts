/**
 * Socket of the client to `/v1/realtime`, at most one. It opens when first needed, stays open until
 * `close`, and reconnects according to the close code. Calls made while it is not open wait,
 * bounded in number and time. Other modules interpret the frames.
 */
import { authTimeout, closeCodes } from "#rpc/close-codes"
import type { ServerClock } from "./clock.ts"
import { ClientError, codeOf } from "./errors.ts"
import {
  decodeFrame,
  type Frame,
  type FrameData,
  type FramePayload,
  type ServerEvent
} from "./frames.ts"
import { watchSocket } from "./liveness.ts"
import { onWake } from "./page-listeners.ts"
import type { Log } from "./log.ts"
import { afterClose, noAttempts, stableMillis } from "./reconnect.ts"
import { abnormalClosure, type Closed, openSocket, type WebSocketClass } from "./socket.ts"
import { type Timers, withTimeout } from "./timers.ts"
import type { Tokens } from "./tokens.ts"
import { disconnected, FrameTransport } from "./transport.ts"
import type { Player, Welcome } from "./wire.ts"

/**
 * `connecting`: for the first time, or again. `offline`: no call has needed the connection yet, or it
 * does not reconnect.
 */
export type ConnectionStatus = "offline" | "connecting" | "online"

/** Callbacks of the connection for the modules of the client. */
export interface ConnectionEvents {
  /** An event of the service. */
  receive?(event: ServerEvent): void
  /** Runs after authentication and before any waiting call, to resume seats. */
  welcomed?(): Promise<void>
  /** `closed`: what ended the connection, or, when `online`, the one before. */
  status?(status: ConnectionStatus, closed: Closed | undefined): void
}

export interface ConnectionOptions {
  readonly url: string
  readonly key: string
  readonly WebSocket: () => WebSocketClass
  readonly tokens: Tokens
  readonly timers: Timers
  readonly clock: ServerClock
  readonly log: Log
}

/** Timeout of a connection attempt, and of a reply. */
const replyMillis = 10_000
/** The most calls that may wait at a time. */
const pendingCallsMax = 256

/** Errors after which the client reconnects. After any other error, the next attempt would fail too. */
const transientErrors: ReadonlyArray<string> = [
  "network_error",
  "timed_out",
  "rate_limited",
  "unavailable",
  "internal_error",
  "refresh_race"
]

const makeReady = () => {
  let resolve!: (welcome: Welcome) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<Welcome>((...settle) => ([resolve, reject] = settle))
  // A connection that fails without a waiting call is no unhandled rejection.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}

/** Whether the token may be the cause: a refresh gets a new one, or finds out that the session has ended. */
const needsToken = ({ code, reason }: Closed): boolean =>
  code === closeCodes.unauthorized || code === closeCodes.tokenExpired || reason === "player_banned"

/** The end of a socket on which nothing arrives. */
const silent: Closed = { code: closeCodes.idle, reason: "timed_out" }

/** One socket from its opening to its close. */
interface Session {
  readonly token: string
  /**
   * Start of the socket: the time at which it opened and the client sent `auth`. Before that, the
   * time at which the client requested it.
   */
  since: number
  isWelcomed: boolean
  /** Whether a frame arrived since the last check. */
  received: boolean
  readonly stop: Array<() => void>
}

export class Connection {
  readonly transport: FrameTransport
  readonly #options: ConnectionOptions
  readonly #listeners: Array<ConnectionEvents> = []
  #ready = makeReady()
  #status: ConnectionStatus = "offline"
  /** Counts the runs, so that a step of an earlier run finds out that it is over. */
  #run = 0
  #attempts = noAttempts
  #session: Session | undefined
  #cancelRetry: (() => void) | undefined
  #pendingCalls = 0
  /** The part of `#pendingCalls` with a timeout. */
  #timedCalls = 0
  #playerId: string | null = null
  /** Cause of the end of the last connection, until the next is online. */
  #lostBy: Closed | undefined
  /** The access token that the socket last sent. */
  #sentToken = ""

  constructor(options: ConnectionOptions) {
    this.#options = options
    const warned = (event: ServerEvent) => this.#emit(event)
    this.transport = new FrameTransport(options.timers, options.log, warned)
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  /** The authenticated player. */
  get playerId(): string | null {
    return this.#playerId
  }

  listen(events: ConnectionEvents): void {
    this.#listeners.push(events)
  }

  /** Waits for an authenticated socket, and opens one if there is none. */
  open(): Promise<Welcome> {
    const { promise } = this.#ready
    if (this.#status === "offline") {
      this.#attempts = noAttempts
      void this.#attempt(++this.#run)
    }
    const timedOut = () => this.transport.disconnected
    return withTimeout(this.#options.timers, promise, replyMillis, timedOut)
  }

  /** Sends a frame once the socket is open, and waits for the reply: without a timeout if `untimed`. */
  async request<F extends Frame>(
    frame: F,
    payload: FramePayload<F>,
    options?: { untimed: true }
  ): Promise<FrameData<F>> {
    if (this.#pendingCalls >= pendingCallsMax) {
      const message = "Too many calls wait: await some."
      throw new ClientError("overloaded", message)
    }
    const timed = options?.untimed === true ? 0 : 1
    this.#pendingCalls++
    this.#timedCalls += timed
    try {
      if (this.#status !== "online") await this.open()
      return await this.transport.call(frame, payload, timed === 1 ? replyMillis : undefined)
    } finally {
      this.#pendingCalls--
      this.#timedCalls -= timed
    }
  }

  /** Sends a frame without a reply, if the socket is open. */
  notify<F extends Frame>(frame: F, payload: FramePayload<F>): void {
    this.transport.notify(frame, payload, this.#status === "online")
  }

  /**
   * Handles a new player or session. A socket belongs to one player: for another player the client
   * opens a new socket, and after a sign-out none.
   */
  setPlayer(player: Player | null): void {
    if (this.#playerId === null) return
    if (this.#playerId === player?.id) return void this.#renew()
    this.close("signed_out")
    if (player !== null) this.open().catch(() => undefined)
  }

  /** Closes the socket. It stays closed until a call needs it. */
  close(reason: string): void {
    if (this.#status === "offline") return
    this.#terminate({ code: 1000, reason })
  }

  /** Opens a socket with a fresh token. */
  async #attempt(run: number): Promise<void> {
    this.#setStatus("connecting")
    const { tokens } = this.#options
    let token: string
    try {
      token = await tokens.access()
    } catch (error) {
      if (run !== this.#run) return
      const reason = codeOf(error) ?? "failed"
      if (transientErrors.includes(reason))
        return this.#reconnect({ code: abnormalClosure, reason }, 0)
      return this.#terminate({ code: closeCodes.unauthorized, reason }, error)
    }
    if (run === this.#run) this.#openSocket(token)
  }

  #openSocket(token: string): void {
    const { key, timers, url } = this.#options
    const session: Session = {
      token,
      since: timers.elapsed(),
      isWelcomed: false,
      received: false,
      stop: []
    }
    this.#session = session
    const close = openSocket({
      WebSocket: this.#options.WebSocket(),
      url,
      opened: (socket) => {
        this.#sentToken = token
        session.since = timers.elapsed()
        this.transport.open(socket, { t: "auth", key, token })
      },
      received: (text) => this.#receive(session, text),
      // The token is as good as before.
      closed: (closed) => this.#lost(session, closed.reason === authTimeout ? silent : closed)
    })
    const cancelTimeout = timers.after(replyMillis, () => {
      if (!session.isWelcomed) this.#lost(session, silent)
    })
    session.stop.push(close, cancelTimeout)
  }

  #receive(session: Session, text: string): void {
    session.received = true
    this.transport.heard()
    this.#options.log("received", text)
    const frame = decodeFrame(text)
    if (frame === undefined) return
    if (frame.t === "reply") return this.transport.receive(frame)
    if (frame.t === "welcome") void this.#welcome(session, frame)
    if (frame.t === "warn" && frame.code === "token_expiring") return void this.#renew()
    this.#emit(frame)
  }

  /** Resumes what the player had, releases the waiting calls, and watches the socket. */
  async #welcome(session: Session, welcome: Welcome): Promise<void> {
    this.#playerId = welcome.playerId
    if (session.isWelcomed) return
    session.isWelcomed = true
    const { clock, timers, tokens } = this.#options
    clock.measured(welcome.serverTime, timers.elapsed() - session.since)
    await Promise.all(this.#listeners.map((listener) => listener.welcomed?.()))
    if (session !== this.#session) return
    const stop = watchSocket({
      timers,
      heartbeatMillis: welcome.heartbeatSeconds * 1000,
      takeReceived: () => {
        const { received } = session
        session.received = false
        return received
      },
      calls: () => [this.#timedCalls, this.#pendingCalls],
      ping: () => this.ping(),
      silent: () => this.#lost(session, silent)
    })
    session.stop.push(stop)
    const { resolve } = this.#ready
    this.#setStatus("online")
    // The player may have changed while the socket opened.
    this.setPlayer(tokens.player)
    resolve(welcome)
  }

  /** Measures the round trip over the open socket. */
  async ping(timeoutMillis?: number) {
    const { clock, timers } = this.#options
    const sent = timers.elapsed()
    const { at } = await this.transport.call("ping", undefined, timeoutMillis)
    const roundTripMillis = timers.elapsed() - sent
    clock.measured(at, roundTripMillis)
    return { at, roundTripMillis: Math.round(roundTripMillis) }
  }

  /** Sends a new access token in band, so that the socket outlives the old one. */
  async #renew(): Promise<void> {
    const { socket } = this.transport
    try {
      const token = await this.#options.tokens.access()
      if (socket !== this.transport.socket || token === this.#sentToken) return
      this.#sentToken = token
      this.transport.authenticate({ t: "auth", token })
    } catch {
      // Without a new token the service closes with 4002, and the client reconnects.
    }
  }

  /** Handles the loss of a session's socket. */
  #lost(session: Session, closed: Closed): void {
    if (session !== this.#session) return
    const { timers, tokens } = this.#options
    this.#endSession()
    if (needsToken(closed)) tokens.expire(session.token)
    this.#reconnect(closed, timers.elapsed() - session.since)
  }

  #reconnect(closed: Closed, livedMillis: number): void {
    const { timers } = this.#options
    const wasStable = this.#status === "online" && livedMillis >= stableMillis
    const attempts = wasStable ? noAttempts : this.#attempts
    const end = { code: closed.code, at: timers.elapsed() }
    const next = afterClose(attempts, end, timers.random())
    if (!next.reconnect) return void this.#end(closed)
    this.#attempts = next.attempts
    const run = this.#run
    this.#disconnect(closed)
    if (run !== this.#run) return
    if (next.delayMillis === 0) return void this.#attempt(run)
    const attempt = () => {
      this.#cancelRetry?.()
      void this.#attempt(run)
    }
    const cancel = timers.after(next.delayMillis, attempt)
    // Somebody looks at the page again, or it is online again.
    const stopWake = onWake(() => {
      if (closed.code !== closeCodes.abuse) attempt()
    })
    this.#cancelRetry = () => {
      cancel()
      stopWake()
    }
  }

  /** Fails the calls that wait for replies; others wait for the next socket. */
  #disconnect(closed: Closed): void {
    if (this.#status === "online") this.#ready = makeReady()
    this.transport.close(closed)
    this.#setStatus("connecting", closed)
  }

  /** Ends the run. A refresh finds out whether the session has ended, which signs the player out. */
  async #end(closed: Closed): Promise<void> {
    let error: unknown
    if (needsToken(closed)) {
      const run = this.#run
      this.#playerId = null
      this.#disconnect(closed)
      await this.#options.tokens.resume().catch((ended: unknown) => {
        error = ended
      })
      if (run !== this.#run) return
    }
    this.#terminate(closed, error)
  }

  /** Closes the socket, which stays closed until a call needs it. */
  #terminate(closed: Closed, error: unknown = disconnected(closed)): void {
    this.#run++
    this.#endSession()
    this.#cancelRetry?.()
    const waiting = this.#ready
    this.#ready = makeReady()
    this.#playerId = null
    this.#setStatus("offline", closed)
    this.transport.close(closed)
    waiting.reject(error)
  }

  #endSession(): void {
    const session = this.#session
    this.#session = undefined
    for (const stop of session?.stop ?? []) stop()
  }

  #emit(event: ServerEvent): void {
    for (const listener of this.#listeners) listener.receive?.(event)
  }

  #setStatus(status: ConnectionStatus, closed = this.#lostBy): void {
    if (this.#status === status) return
    this.#status = status
    this.#lostBy = status === "connecting" ? closed : undefined
    this.#options.log("status", status, closed ?? "")
    for (const listener of this.#listeners) listener.status?.(status, closed)
  }
}
