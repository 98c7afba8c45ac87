/**
 * The client's one socket to `/v1/realtime`. It opens when first needed, stays open until `close`, and
 * reconnects according to the close code. Calls made while it is not open wait, bounded in number and
 * time. Frames are interpreted elsewhere.
 */
import { Clock, Deferred, Effect, Fiber, Random, Result } from "effect"
import type { Player } from "#rpc/players"
import { closeCodes, ping, type ServerEvent, type Welcome } from "#rpc/realtime"
import { type Disconnected, Overloaded, TimedOut } from "./errors.ts"
import { decodeFrame, type Frame, type FramePayload } from "./frames.ts"
import { disconnected, FrameTransport } from "./transport.ts"
import { afterClose, stableMillis } from "./reconnect.ts"
import { abnormalClosure, type Closed, runSocket, type WebSocketClass } from "./socket.ts"
import type { Tokens } from "./tokens.ts"

/** `connecting`: for the first time, or again. `closed`: not yet needed, or not reconnecting. */
export type ConnectionStatus = "closed" | "connecting" | "open"

type TokenError = Effect.Error<ReturnType<Tokens["access"]>>

/** Why a call failed without a reply from the service. */
export type CallError = TokenError | Disconnected | Overloaded | TimedOut

/** Callbacks of the connection. */
export interface ConnectionEvents {
  /** An event of the service. */
  readonly event: (event: ServerEvent) => void
  /** An event that this client version cannot decode, with its type. */
  readonly unknownEvent: (type: string | undefined) => void
  /** Runs after authentication and before any waiting call. Seats are resumed here. */
  readonly welcomed: Effect.Effect<void>
  readonly status: (status: ConnectionStatus, closed: Closed | undefined) => void
}

export interface ConnectionOptions {
  readonly url: string
  readonly key: string
  readonly WebSocket: WebSocketClass
  readonly tokens: Tokens
  readonly events: ConnectionEvents
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
}

/** Timeout of a connection attempt, and of a reply. */
const replyTimeout = "10 seconds"
/** Interval at which the connection checks for received frames. */
const checkMillis = 2000
/** Timeout of a liveness ping while a call waits. */
const pingTimeout = "3 seconds"
/** The most calls that may wait at a time. */
const pendingCallsMax = 256

/** Errors after which the client reconnects. After any other error, the next attempt would fail too. */
const transientErrors: ReadonlySet<string> = new Set([
  "network_error",
  "timed_out",
  "rate_limited",
  "unavailable",
  "internal_error",
  "refresh_race"
])

export class Connection {
  readonly transport: FrameTransport
  readonly #options: ConnectionOptions
  #ready = Deferred.makeUnsafe<Welcome, CallError>()
  #status: ConnectionStatus = "closed"
  #loop: Fiber.Fiber<void> | undefined
  #pendingCalls = 0
  /** The part of `#pendingCalls` without a timeout. */
  #untimedCalls = 0
  #playerId: string | null = null
  /** The access token that the socket last sent. */
  #sentToken = ""
  /** Whether a frame arrived since the last check. */
  #received = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.transport = new FrameTransport((warning) => options.events.event(warning))
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  /** The authenticated player. */
  get playerId(): string | null {
    return this.#playerId
  }

  /** Waits for an authenticated socket, and opens one if there is none. */
  open(): Effect.Effect<Welcome, CallError> {
    return Effect.suspend(() => {
      // The yield delays the loop's first step until `#loop` is assigned.
      this.#loop ??= this.#options.run(Effect.andThen(Effect.yieldNow, this.#runLoop()))
      return Deferred.await(this.#ready).pipe(
        Effect.timeoutOrElse({
          duration: replyTimeout,
          orElse: () => Effect.fail(this.transport.disconnected)
        })
      )
    })
  }

  /** Sends a frame once the socket is open, and waits for the reply: without a timeout if `untimed`. */
  request<R extends Frame>(frame: R, payload: FramePayload<R>, options?: { untimed: true }) {
    return Effect.suspend(() => {
      if (this.#pendingCalls >= pendingCallsMax) {
        return Effect.fail(
          new Overloaded({ message: `Too many calls: ${pendingCallsMax} are waiting for replies.` })
        )
      }
      const isUntimed = options?.untimed === true
      this.#pendingCalls++
      if (isUntimed) this.#untimedCalls++
      const reply = this.transport.call(frame, payload)
      const timedOut = new TimedOut({ message: `No reply within ${replyTimeout}.` })
      return this.open().pipe(
        Effect.andThen(
          isUntimed
            ? reply
            : Effect.timeoutOrElse(reply, {
                duration: replyTimeout,
                orElse: () => Effect.fail(timedOut)
              })
        ),
        Effect.ensuring(
          Effect.sync(() => {
            this.#pendingCalls--
            if (isUntimed) this.#untimedCalls--
          })
        )
      )
    })
  }

  /** Sends a frame without a reply, if the socket is open. */
  notify<R extends Frame>(frame: R, payload: FramePayload<R>): void {
    if (this.#status === "open") this.transport.notify(frame, payload)
    else this.transport.warn("disconnected", `${frame._tag} was not sent: the socket is closed.`)
  }

  /**
   * Handles a new player or session. A socket belongs to one player: for another player the client
   * opens a new socket, and after a sign-out none.
   */
  setPlayer(player: Player | null): void {
    if (this.#playerId === null) return
    if (this.#playerId === player?.id) return this.#renew()
    this.close("signed_out")
    if (player !== null) this.#options.run(Effect.ignore(this.open()))
  }

  /** Closes the socket. It stays closed until a call needs it. */
  close(reason: string): void {
    if (this.#loop === undefined) return
    this.#options.run(Fiber.interrupt(this.#loop))
    const closed = { code: 1000, reason }
    this.#terminate(closed, disconnected(closed))
  }

  /** Keeps a socket open, reconnecting after each close. */
  #runLoop() {
    return Effect.gen({ self: this }, function* () {
      let failures = 0
      while (true) {
        this.#setStatus("connecting")
        const token = yield* Effect.result(this.#options.tokens.access())
        if (Result.isFailure(token) && !transientErrors.has(token.failure._tag)) {
          const closed = { code: closeCodes.unauthorized, reason: token.failure._tag }
          return this.#terminate(closed, token.failure)
        }
        const since = yield* Clock.currentTimeMillis
        const closed = Result.isSuccess(token)
          ? yield* this.#runSession(token.success)
          : { code: abnormalClosure, reason: token.failure._tag }
        const lived = (yield* Clock.currentTimeMillis) - since
        failures = this.#status === "open" && lived >= stableMillis ? 1 : failures + 1
        const next = afterClose(closed.code, failures, yield* Random.next)
        if (!next.reconnect) return this.#terminate(closed, disconnected(closed))
        this.#prepareReconnect(closed)
        yield* Effect.sleep(next.delayMillis)
      }
    })
  }

  /** Runs one socket from its opening to its close. */
  #runSession(token: string) {
    return Effect.gen({ self: this }, function* () {
      const { WebSocket, key, tokens, url } = this.#options
      const welcome = Deferred.makeUnsafe<Welcome>()
      const socket = runSocket({
        WebSocket,
        url,
        opened: (opened) => {
          this.#sentToken = token
          this.transport.open(opened, { t: "auth", key, token })
        },
        received: (text) => this.#receive(text, welcome)
      })
      const closed = yield* Effect.raceFirst(socket, this.#openSession(welcome))
      const { tokenExpired, unauthorized } = closeCodes
      if (closed.code === tokenExpired || closed.code === unauthorized) tokens.expire(token)
      return closed
    })
  }

  /** Waits for `welcome`, releases the waiting calls, then monitors the socket. Ends when it is dead. */
  #openSession(welcome: Deferred.Deferred<Welcome>): Effect.Effect<Closed> {
    const silent: Closed = { code: closeCodes.idle, reason: "timed_out" }
    return Effect.gen({ self: this }, function* () {
      const ready = this.#ready
      const first = yield* Effect.timeout(Deferred.await(welcome), replyTimeout)
      yield* this.#options.events.welcomed
      this.#setStatus("open")
      Deferred.doneUnsafe(ready, Effect.succeed(first))
      yield* this.#monitor(first.heartbeatSeconds * 1000)
      return silent
    }).pipe(Effect.catchTag("TimeoutError", () => Effect.succeed(silent)))
  }

  /**
   * Failure detector of the socket: ends when a ping stays unanswered. Browsers hide the service's pings,
   * and a dead socket may look open for minutes. So the client pings after a silence of 2 seconds while
   * a call waits, of half the heartbeat interval while only calls without a timeout wait (there may be
   * very many), and else of the whole interval.
   */
  #monitor(heartbeatMillis: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      let silentMillis = 0
      while (true) {
        this.#received = false
        yield* Effect.sleep(checkMillis)
        silentMillis = this.#received ? 0 : silentMillis + checkMillis
        const isCallWaiting = this.#pendingCalls > this.#untimedCalls
        const relaxedMillis = this.#pendingCalls > 0 ? heartbeatMillis / 2 : heartbeatMillis
        if (silentMillis < (isCallWaiting ? checkMillis : relaxedMillis)) continue
        const pinged = Effect.exit(this.transport.call(ping, undefined))
        yield* Effect.timeoutOption(pinged, isCallWaiting ? pingTimeout : replyTimeout)
        if (!this.#received) return
        silentMillis = 0
      }
    })
  }

  #receive(text: string, welcome: Deferred.Deferred<Welcome>): void {
    const { events } = this.#options
    this.#received = true
    const frame = decodeFrame(text)
    if (frame.t === "unknown") return events.unknownEvent(frame.type)
    if (frame.t === "reply") return this.transport.receive(frame)
    if (frame.t === "welcome") {
      this.#playerId = frame.playerId
      Deferred.doneUnsafe(welcome, Effect.succeed(frame))
    }
    if (frame.t === "warn" && frame.code === "token_expiring") return this.#renew()
    events.event(frame)
  }

  /** Sends a new access token in band, so that the socket outlives the old one. */
  #renew(): void {
    const { socket } = this.transport
    const renewed = Effect.map(this.#options.tokens.access(), (token) => {
      if (socket !== this.transport.socket || token === this.#sentToken) return
      this.#sentToken = token
      this.transport.authenticate({ t: "auth", token })
    })
    // Without a new token the service closes with 4002, and the loop handles that.
    this.#options.run(Effect.ignore(renewed))
  }

  /** The socket is lost; the loop reconnects. */
  #prepareReconnect(closed: Closed): void {
    if (this.#status === "open") this.#ready = Deferred.makeUnsafe()
    this.#setStatus("connecting", closed)
    this.transport.close(closed)
  }

  /** The socket is closed, and stays closed until a call needs it. */
  #terminate(closed: Closed, error: CallError): void {
    const waiting = this.#ready
    this.#ready = Deferred.makeUnsafe()
    this.#loop = undefined
    this.#playerId = null
    this.#setStatus("closed", closed)
    this.transport.close(closed)
    Deferred.doneUnsafe(waiting, Effect.fail(error))
  }

  #setStatus(status: ConnectionStatus, closed?: Closed): void {
    if (this.#status === status) return
    this.#status = status
    this.#options.events.status(status, closed)
  }
}
