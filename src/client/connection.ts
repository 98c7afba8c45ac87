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
import { disconnected, Line } from "./line.ts"
import { afterClose, soundMillis } from "./reconnect.ts"
import { abnormalClosure, type Closed, runSocket, type WebSocketClass } from "./socket.ts"
import type { Tokens } from "./tokens.ts"

/** `connecting` for the first time or again; `closed` before, and when nothing reopens it. */
export type ConnectionStatus = "closed" | "connecting" | "open"

type TokenError = Effect.Error<ReturnType<Tokens["access"]>>

/** Why a call failed that the service did not answer. */
export type CallFault = TokenError | Disconnected | Overloaded | TimedOut

/** What the connection tells its owner. */
export interface ConnectionEvents {
  /** Something the service told, replies apart. */
  readonly event: (event: ServerEvent) => void
  /** An event of this type could not be read. */
  readonly unread: (type: string | undefined) => void
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
const patience = "10 seconds"
/** How often the connection is looked at. */
const lookMillis = 2000
/** How long a silent service may take to answer a ping while a call waits. */
const hurriedPatience = "3 seconds"
/** Calls that wait at one time. */
const callsMax = 256

/** Failures that time may heal; any other means that the next attempt would fail alike. */
const passing: ReadonlySet<string> = new Set([
  "network_error",
  "timed_out",
  "rate_limited",
  "unavailable",
  "internal_error",
  "refresh_race"
])

export class Connection {
  readonly line: Line
  readonly #options: ConnectionOptions
  #ready = Deferred.makeUnsafe<Welcome, CallFault>()
  #status: ConnectionStatus = "closed"
  #loop: Fiber.Fiber<void> | undefined
  #calls = 0
  /** Those of them that wait for ever. */
  #patientCalls = 0
  #playerId: string | null = null
  /** The access token that the service has last seen on this socket. */
  #shown = ""
  /** Something came in since the last heartbeat. */
  #heard = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.line = new Line((warning) => options.events.event(warning))
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  /** The player whom the service has let in. */
  get playerId(): string | null {
    return this.#playerId
  }

  /** Waits until the service has let a socket in, and opens one if none is wanted yet. */
  open(): Effect.Effect<Welcome, CallFault> {
    return Effect.suspend(() => {
      // The loop takes its first step in a later turn, when `#loop` is known.
      this.#loop ??= this.#options.run(Effect.andThen(Effect.yieldNow, this.#run()))
      return Deferred.await(this.#ready).pipe(
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () => Effect.fail(this.line.disconnected)
        })
      )
    })
  }

  /** Sends a frame once the socket is open, and waits for the reply: if `patient`, for ever. */
  request<R extends Frame>(frame: R, payload: FramePayload<R>, options?: { patient: true }) {
    return Effect.suspend(() => {
      if (this.#calls >= callsMax) {
        return Effect.fail(new Overloaded({ message: `${callsMax} calls wait already.` }))
      }
      const isPatient = options?.patient === true
      this.#calls++
      if (isPatient) this.#patientCalls++
      const reply = this.line.call(frame, payload)
      const late = new TimedOut({ message: `No reply within ${patience}.` })
      return this.open().pipe(
        Effect.andThen(
          isPatient
            ? reply
            : Effect.timeoutOrElse(reply, { duration: patience, orElse: () => Effect.fail(late) })
        ),
        Effect.ensuring(
          Effect.sync(() => {
            this.#calls--
            if (isPatient) this.#patientCalls--
          })
        )
      )
    })
  }

  /** Sends a frame that wants no reply, if the socket is open. */
  tell<R extends Frame>(frame: R, payload: FramePayload<R>): void {
    if (this.#status === "open") this.line.tell(frame, payload)
    else this.line.warn("disconnected", `${frame._tag} was not sent.`)
  }

  /**
   * The player is this one now, perhaps with a new session: a socket is its player's, so the next
   * player gets another, and nobody gets none.
   */
  belongTo(player: Player | null): void {
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
    this.#end(closed, disconnected(closed))
  }

  /** Holds a socket open, one after the other. */
  #run() {
    return Effect.gen({ self: this }, function* () {
      let failures = 0
      while (true) {
        this.#setStatus("connecting")
        const token = yield* Effect.result(this.#options.tokens.access())
        if (Result.isFailure(token) && !passing.has(token.failure._tag)) {
          const closed = { code: closeCodes.unauthorized, reason: token.failure._tag }
          return this.#end(closed, token.failure)
        }
        const since = yield* Clock.currentTimeMillis
        const closed = Result.isSuccess(token)
          ? yield* this.#live(token.success)
          : { code: abnormalClosure, reason: token.failure._tag }
        const lived = (yield* Clock.currentTimeMillis) - since
        failures = this.#status === "open" && lived >= soundMillis ? 1 : failures + 1
        const next = afterClose(closed.code, failures, yield* Random.next)
        if (!next.reconnect) return this.#end(closed, disconnected(closed))
        this.#down(closed)
        yield* Effect.sleep(next.delayMillis)
      }
    })
  }

  /** One socket, from its opening to its end. */
  #live(token: string) {
    return Effect.gen({ self: this }, function* () {
      const { WebSocket, key, tokens, url } = this.#options
      const welcome = Deferred.makeUnsafe<Welcome>()
      const socket = runSocket({
        WebSocket,
        url,
        opened: (opened) => {
          this.#shown = token
          this.line.open(opened, { t: "auth", key, token })
        },
        received: (text) => this.#receive(text, welcome)
      })
      const closed = yield* Effect.raceFirst(socket, this.#supervise(welcome))
      const { tokenExpired, unauthorized } = closeCodes
      if (closed.code === tokenExpired || closed.code === unauthorized) tokens.expire(token)
      return closed
    })
  }

  /** Lets waiting calls through once the service is ready for them, and watches the line. */
  #supervise(welcome: Deferred.Deferred<Welcome>): Effect.Effect<Closed> {
    const silent: Closed = { code: closeCodes.idle, reason: "timed_out" }
    return Effect.gen({ self: this }, function* () {
      const ready = this.#ready
      const first = yield* Effect.timeout(Deferred.await(welcome), patience)
      yield* this.#options.events.welcomed
      this.#setStatus("open")
      Deferred.doneUnsafe(ready, Effect.succeed(first))
      yield* this.#listen(first.heartbeatSeconds * 1000)
      return silent
    }).pipe(Effect.catchTag("TimeoutError", () => Effect.succeed(silent)))
  }

  /**
   * Ends when nobody is there any more. A page never learns of the service's pings, and a dead line may
   * look open for minutes: it is asked after a silence, which is short while a call waits, and half as
   * long as without one while only patient calls do, of which there may be very many.
   */
  #listen(heartbeatMillis: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      let silentMillis = 0
      while (true) {
        this.#heard = false
        yield* Effect.sleep(lookMillis)
        silentMillis = this.#heard ? 0 : silentMillis + lookMillis
        const hurried = this.#calls > this.#patientCalls
        const unhurried = this.#calls > 0 ? heartbeatMillis / 2 : heartbeatMillis
        if (silentMillis < (hurried ? lookMillis : unhurried)) continue
        const asked = Effect.exit(this.line.call(ping, undefined))
        yield* Effect.timeoutOption(asked, hurried ? hurriedPatience : patience)
        if (!this.#heard) return
        silentMillis = 0
      }
    })
  }

  #receive(text: string, welcome: Deferred.Deferred<Welcome>): void {
    const { events } = this.#options
    this.#heard = true
    const frame = decodeFrame(text)
    if (frame.t === "unread") return events.unread(frame.type)
    if (frame.t === "reply") return this.line.receive(frame)
    if (frame.t === "welcome") {
      this.#playerId = frame.playerId
      Deferred.doneUnsafe(welcome, Effect.succeed(frame))
    }
    if (frame.t === "warn" && frame.code === "token_expiring") return this.#renew()
    events.event(frame)
  }

  /** The socket outlives its access token: a new one is shown in band (decisions 3.6.6). */
  #renew(): void {
    const { socket } = this.line
    const renewed = Effect.map(this.#options.tokens.access(), (token) => {
      if (socket !== this.line.socket || token === this.#shown) return
      this.#shown = token
      this.line.authenticate({ t: "auth", token })
    })
    // If no token can be had, the service closes with 4002, and that is dealt with there.
    this.#options.run(Effect.ignore(renewed))
  }

  /** The socket is gone, and another is sought. */
  #down(closed: Closed): void {
    if (this.#status === "open") this.#ready = Deferred.makeUnsafe()
    this.#setStatus("connecting", closed)
    this.line.close(closed)
  }

  /** The socket is gone, and stays so unless something asks for another. */
  #end(closed: Closed, error: CallFault): void {
    const waiting = this.#ready
    this.#ready = Deferred.makeUnsafe()
    this.#loop = undefined
    this.#playerId = null
    this.#setStatus("closed", closed)
    this.line.close(closed)
    Deferred.doneUnsafe(waiting, Effect.fail(error))
  }

  #setStatus(status: ConnectionStatus, closed?: Closed): void {
    if (this.#status === status) return
    this.#status = status
    this.#options.events.status(status, closed)
  }
}
