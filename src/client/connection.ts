/**
 * The one socket of a client to `/v1/realtime`: opened when it is first needed, held open until
 * `close`, and opened again as the close codes tell (spec sections 4.4 and 6, decisions 3.6). Calls
 * made meanwhile wait, bounded in number and time. What the frames mean is not decided here.
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

/** `connecting` for the first time or again; `closed` before, and when nothing reopens it. */
export type ConnectionStatus = "closed" | "connecting" | "open"

type TokenError = Effect.Error<ReturnType<Tokens["access"]>>

/** Why a call failed that the service did not answer. */
export type CallError = TokenError | Disconnected | Overloaded | TimedOut

/** What the connection tells its owner. */
export interface ConnectionEvents {
  /** Something the service told, replies apart. */
  readonly event: (event: ServerEvent) => void
  /** An event of this type could not be read. */
  readonly unknownEvent: (type: string | undefined) => void
  /** Runs when the service has let a socket in, before any call that waits; a seat is resumed here. */
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

/** How long a connection or a reply may take. */
const replyTimeout = "10 seconds"
/** How often the connection is looked at. */
const checkMillis = 2000
/** How long a silent service may take to answer a ping while a call waits. */
const pingTimeout = "3 seconds"
/** Calls that wait at one time. */
const pendingCallsMax = 256

/** Failures that time may heal; any other means that the next attempt would fail alike. */
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
  /** Those of them that wait for ever. */
  #untimedCalls = 0
  #playerId: string | null = null
  /** The access token that the service has last seen on this socket. */
  #sentToken = ""
  /** Something came in since the last heartbeat. */
  #received = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.transport = new FrameTransport((warning) => options.events.event(warning))
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  /** The player whom the service has let in. */
  get playerId(): string | null {
    return this.#playerId
  }

  /** Waits until the service has let a socket in, and opens one if none is wanted yet. */
  open(): Effect.Effect<Welcome, CallError> {
    return Effect.suspend(() => {
      // The loop takes its first step in a later turn, when `#loop` is known.
      this.#loop ??= this.#options.run(Effect.andThen(Effect.yieldNow, this.#runLoop()))
      return Deferred.await(this.#ready).pipe(
        Effect.timeoutOrElse({
          duration: replyTimeout,
          orElse: () => Effect.fail(this.transport.disconnected)
        })
      )
    })
  }

  /** Sends a frame once the socket is open, and waits for the reply: if `patient`, for ever. */
  request<R extends Frame>(frame: R, payload: FramePayload<R>, options?: { patient: true }) {
    return Effect.suspend(() => {
      if (this.#pendingCalls >= pendingCallsMax) {
        return Effect.fail(new Overloaded({ message: `${pendingCallsMax} calls wait already.` }))
      }
      const isUntimed = options?.patient === true
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

  /** Sends a frame that wants no reply, if the socket is open. */
  notify<R extends Frame>(frame: R, payload: FramePayload<R>): void {
    if (this.#status === "open") this.transport.notify(frame, payload)
    else this.transport.warn("disconnected", `${frame._tag} was not sent.`)
  }

  /**
   * The player is this one now, perhaps with a new session: a socket is its player's, so the next
   * player gets another, and nobody gets none.
   */
  setPlayer(player: Player | null): void {
    if (this.#playerId === null) return
    if (this.#playerId === player?.id) return this.#renew()
    this.close("signed_out")
    if (player !== null) this.#options.run(Effect.ignore(this.open()))
  }

  /** Closes the socket and leaves it closed, until something needs it again. */
  close(reason: string): void {
    if (this.#loop === undefined) return
    this.#options.run(Fiber.interrupt(this.#loop))
    const closed = { code: 1000, reason }
    this.#terminate(closed, disconnected(closed))
  }

  /** Holds a socket open, one after the other. */
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

  /** One socket, from its opening to its end. */
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

  /** Lets waiting calls through once the service is ready for them, and watches the line. */
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
   * Ends when nobody is there any more. A page never learns of the service's pings, and a dead line may
   * look open for minutes: it is asked after a silence, which is short while a call waits, and half as
   * long as without one while only patient calls do, of which there may be very many.
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

  /** The socket outlives its access token: a new one is shown in band (decisions 3.6.6). */
  #renew(): void {
    const { socket } = this.transport
    const renewed = Effect.map(this.#options.tokens.access(), (token) => {
      if (socket !== this.transport.socket || token === this.#sentToken) return
      this.#sentToken = token
      this.transport.authenticate({ t: "auth", token })
    })
    // If no token can be had, the service closes with 4002, and that is dealt with there.
    this.#options.run(Effect.ignore(renewed))
  }

  /** The socket is gone, and another is sought. */
  #prepareReconnect(closed: Closed): void {
    if (this.#status === "open") this.#ready = Deferred.makeUnsafe()
    this.#setStatus("connecting", closed)
    this.transport.close(closed)
  }

  /** The socket is gone, and stays so unless something asks for another. */
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
