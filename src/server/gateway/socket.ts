/**
 * One WebSocket of `/v1/realtime`: the first frame within five seconds, then the spec's JSON frames
 * (decisions 3.6). It authenticates, limits and decodes; deciding is the room's. Time comes in from
 * the gateway's sweep, once a second for all sockets.
 */
import type { Duplex } from "node:stream"
import { DateTime, Effect, Fiber, Result } from "effect"
import type { WebSocket } from "ws"
import type { PlayerCaller } from "#rpc/auth"
import { type CodedError, RateLimited, Unauthorized } from "#rpc/errors/codes"
import { socket as limits } from "#rpc/limits"
import { type CloseCode, closeCodes, type HeldSeat } from "#rpc/realtime"
import { Frame, Outbox, pingFrame, type Turn } from "#server/platform/outbox"
import { FrameBucket } from "#server/platform/token-bucket"
import {
  type FrameError,
  dispatch,
  type FrameHandlers,
  frameHead,
  parseFrame,
  replyFrame,
  warnFrame
} from "#server/links/frames"
import type { Listener } from "#server/links/listener"
import type { FrameSink, PlayerConnection } from "#server/links/player-connection"
import { type EnabledFeatures, featureError } from "./enabled-features.ts"

/** An admitted socket, as the gateway found it. */
export interface Admitted {
  readonly environmentId: string
  readonly player: PlayerCaller | undefined
  readonly connection: PlayerConnection | undefined
  /** The seat that was kept for the player when the socket opened. */
  readonly seat: HeldSeat | null
  /** The connection of a socket without a player. */
  readonly listener: Listener | undefined
  readonly welcome: Frame
}

/** What sockets have said, in numbers that only grow. */
export class FrameStats {
  frames = 0
  /** Frames that were not understood. */
  invalid = 0
  /** Frames that came too fast. */
  limited = 0
}

/** What a socket asks of the gateway. */
export interface SocketGateway {
  readonly turn: Turn
  readonly heard: FrameStats
  readonly handlers: FrameHandlers
  readonly listenerHandlers: FrameHandlers<Listener>
  readonly now: () => number
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Checks the first frame. */
  readonly admit: (
    socket: RealtimeSocket,
    frame: Readonly<Record<string, unknown>>
  ) => Effect.Effect<Admitted, CodedError>
  /** Checks a new token of an open socket. */
  readonly renew: (
    admitted: Admitted,
    frame: Readonly<Record<string, unknown>>
  ) => Effect.Effect<Admitted, CodedError>
  /** The socket takes and says nothing more; `closed` follows. */
  readonly gone: (socket: RealtimeSocket) => void
  readonly closed: (socket: RealtimeSocket) => void
}

const second = 1000
/** How long the other side has to answer a close before the socket is cut. */
const closeMillis = 2 * second

const closeCodeOf = (error: CodedError): CloseCode => {
  switch (error._tag) {
    case "token_expired":
      return closeCodes.tokenExpired
    case "origin_not_allowed":
    case "feature_disabled":
    case "player_banned":
      return closeCodes.forbidden
    case "rate_limited":
      return closeCodes.abuse
    case "unavailable":
      return closeCodes.draining
    default:
      return closeCodes.unauthorized
  }
}

export class RealtimeSocket implements FrameSink {
  readonly origin: string | undefined
  readonly address: string
  admitted: Admitted | undefined
  /** What the environment offers; kept by the gateway as the config changes. */
  offers: EnabledFeatures = { rooms: true, channels: true, any: true }
  /** Why we closed the socket; absent when the other side did, or the connection broke. */
  closedWith: CloseCode | undefined
  readonly #ws: WebSocket
  readonly #outbox: Outbox
  readonly #gateway: SocketGateway
  #bucket: FrameBucket
  readonly #openedAt: number
  #admitting: Fiber.Fiber<void> | undefined
  /** Frames that came while the first was being checked, and their bytes. */
  #early: Array<Buffer> = []
  #earlyBytes = 0
  #heardAt: number
  #pingedAt: number
  #warned = false
  #closedAt: number | undefined

  constructor(options: {
    readonly ws: WebSocket
    readonly stream: Duplex
    readonly origin: string | undefined
    readonly address: string
    readonly gateway: SocketGateway
  }) {
    const now = options.gateway.now()
    this.origin = options.origin
    this.address = options.address
    this.#ws = options.ws
    this.#gateway = options.gateway
    this.#openedAt = now
    this.#heardAt = now
    this.#pingedAt = now
    this.#bucket = new FrameBucket(now)
    this.#outbox = new Outbox(options.stream, options.gateway.turn, () =>
      this.close(closeCodes.slowConsumer, "slow_consumer")
    )
    this.#ws.on("message", (data: Buffer, isBinary) => this.#message(data, isBinary))
    this.#ws.on("ping", () => this.#control())
    this.#ws.on("pong", () => this.#control())
    // A frame against the protocol, too: the close code says which, so it must still go out.
    this.#ws.on("error", () => this.#gone(false))
    this.#ws.on("close", () => {
      this.#gone(false)
      this.#gateway.closed(this)
    })
  }

  push(frame: Frame): void {
    this.#outbox.push(frame)
  }

  /** Closes with a code of spec section 6; the reason is the error's code. */
  close(code: CloseCode, reason: string): void {
    if (this.#closedAt !== undefined) return
    this.#closedAt = this.#gateway.now()
    this.closedWith = code
    this.#outbox.flush()
    this.#outbox.close()
    this.#gone(code === closeCodes.replaced || code === closeCodes.draining)
    this.#ws.close(code, reason)
  }

  /** What time alone brings: late first frames, silence, tokens that end. */
  sweep(now: number): void {
    if (this.#closedAt !== undefined) {
      if (now - this.#closedAt >= closeMillis) this.#ws.terminate()
      return
    }
    if (this.admitted === undefined) {
      const waited = now - this.#openedAt
      // Once the frame is here, it is the service that is late.
      if (this.#admitting !== undefined) {
        if (waited >= limits.admitSeconds * second) {
          this.close(closeCodes.draining, "unavailable")
        }
      } else if (waited >= limits.authFrameSeconds * second) {
        this.close(closeCodes.unauthorized, "unauthorized")
      }
      return
    }
    if (now - this.#heardAt >= limits.idleSeconds * second) {
      return this.close(closeCodes.idle, "idle")
    }
    if (now - this.#pingedAt >= limits.heartbeatSeconds * second) {
      this.#pingedAt = now
      this.#outbox.push(pingFrame)
    }
    this.#sweepToken(now, this.admitted.player)
  }

  #sweepToken(now: number, player: PlayerCaller | undefined): void {
    if (player === undefined) return
    if (now >= player.expiresAt + limits.tokenGraceSeconds * second) {
      return this.close(closeCodes.tokenExpired, "token_expired")
    }
    if (this.#warned || now < player.expiresAt - limits.tokenWarningSeconds * second) return
    this.#warned = true
    const at = DateTime.formatIso(DateTime.makeUnsafe(player.expiresAt))
    this.push(
      Frame.of({
        t: "warn",
        code: "token_expiring",
        message: "Send auth with a new access token.",
        details: { tokenExpiresAt: at }
      })
    )
  }

  #message(data: Buffer, isBinary: boolean): void {
    if (this.#closedAt !== undefined) return
    this.#gateway.heard.frames += 1
    if (isBinary) return this.close(closeCodes.unsupported, "binary_not_supported")
    if (this.#admitting !== undefined && this.admitted === undefined) return this.#wait(data)
    const now = this.#gateway.now()
    this.#heardAt = now
    const parsed = parseFrame(data.toString())
    if (this.admitted === undefined) {
      if (Result.isFailure(parsed) || parsed.success["t"] !== "auth") {
        return this.close(closeCodes.unauthorized, "unauthorized")
      }
      return this.#authenticate(parsed.success)
    }
    if (Result.isFailure(parsed)) return this.#broken(parsed.failure, now)
    const head = frameHead(parsed.success)
    if (Result.isFailure(head)) return this.#broken(head.failure, now)
    if (!this.#bucket.take(now)) return this.#dropped(head.success.rid, now)
    if (head.success.t === "auth") return this.#renew(parsed.success, head.success.rid)
    if (this.admitted.connection !== undefined) {
      this.admitted.connection.currentFrameBytes = data.length
    }
    this.#act(head.success, parsed.success, this.admitted, now)
  }

  #act(
    head: { readonly t: string; readonly rid: string | undefined },
    members: Readonly<Record<string, unknown>>,
    { connection, listener }: Admitted,
    now: number
  ): void {
    const error = featureError(this.offers, head.t)
    if (error !== undefined) return this.#fail({ rid: head.rid, error })
    const { handlers, listenerHandlers } = this.#gateway
    const broken =
      connection !== undefined
        ? dispatch(handlers, head, members, connection)
        : listener && dispatch(listenerHandlers, head, members, listener)
    if (broken !== undefined) this.#broken(broken, now, limits.malformedFrameCost - 1)
  }

  /** Control frames cost what others do; a ping has its answer already. */
  #control(): void {
    if (this.#closedAt !== undefined) return
    const now = this.#gateway.now()
    this.#heardAt = now
    if (this.#bucket.take(now)) return
    this.#gateway.heard.limited += 1
    if (this.#bucket.drop(now)) this.close(closeCodes.abuse, "rate_limited")
  }

  /** What follows the first frame waits until it is known whose it is. */
  #wait(data: Buffer): void {
    this.#early.push(data)
    this.#earlyBytes += data.length
    if (this.#early.length > limits.earlyFramesMax || this.#earlyBytes > limits.frameMaxBytes) {
      this.close(closeCodes.abuse, "rate_limited")
    }
  }

  #authenticate(frame: Readonly<Record<string, unknown>>): void {
    const head = frameHead(frame)
    const rid = Result.isSuccess(head) ? head.success.rid : undefined
    this.#admitting = this.#gateway.run(
      this.#gateway.admit(this, frame).pipe(
        Effect.match({
          onFailure: (error) => this.close(closeCodeOf(error), error._tag),
          onSuccess: (admitted) => this.#admit(admitted, rid)
        })
      )
    )
  }

  #admit(admitted: Admitted, rid: string | undefined): void {
    if (this.#closedAt !== undefined) {
      admitted.connection?.close(false)
      admitted.listener?.close()
      return
    }
    this.admitted = admitted
    this.#admitting = undefined
    if (admitted.player === undefined) {
      const { anonymousFramesBurst, anonymousFramesPerSecond } = limits
      const now = this.#gateway.now()
      this.#bucket = new FrameBucket(now, anonymousFramesPerSecond, anonymousFramesBurst)
    }
    this.push(admitted.welcome)
    if (rid !== undefined) this.push(replyFrame(rid, { ok: true, data: {} }))
    const early = this.#early
    this.#early = []
    for (const data of early) this.#message(data, false)
  }

  #renew(frame: Readonly<Record<string, unknown>>, rid: string | undefined): void {
    if (this.admitted === undefined) return
    this.#gateway.run(
      this.#gateway.renew(this.admitted, frame).pipe(
        Effect.match({
          onFailure: (error) => {
            this.#fail({ rid, error })
            if (error instanceof Unauthorized) this.close(closeCodeOf(error), error._tag)
          },
          onSuccess: (renewed) => {
            this.admitted = renewed
            this.#warned = false
            this.push(renewed.welcome)
            if (rid !== undefined) this.push(replyFrame(rid, { ok: true, data: {} }))
          }
        })
      )
    )
  }

  /** A frame that does not fit: answered, and dear. */
  #broken(broken: FrameError, now: number, cost: number = limits.malformedFrameCost): void {
    this.#gateway.heard.invalid += 1
    if (this.#bucket.take(now, cost)) this.#fail(broken)
    else this.#dropped(broken.rid, now)
  }

  #dropped(rid: string | undefined, now: number): void {
    this.#gateway.heard.limited += 1
    if (this.#bucket.drop(now)) return this.close(closeCodes.abuse, "rate_limited")
    const details = { retryAfterSeconds: this.#bucket.retryAfterSeconds }
    this.#fail({ rid, error: new RateLimited({ details }) })
  }

  #fail({ error, rid }: FrameError): void {
    this.push(rid === undefined ? warnFrame(error) : replyFrame(rid, { ok: false, error }))
  }

  /** The socket is over; a replaced or draining one expects its player back at once. */
  #gone(quiet: boolean): void {
    this.#closedAt ??= this.#gateway.now()
    this.#early = []
    this.#outbox.close()
    if (this.#admitting !== undefined && this.admitted === undefined) {
      this.#gateway.run(Fiber.interrupt(this.#admitting))
    }
    this.admitted?.connection?.close(quiet)
    this.admitted?.listener?.close()
    this.#gateway.gone(this)
  }
}
