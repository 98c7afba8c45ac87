/**
 * One WebSocket of `/v1/realtime`: authenticates the first frame, limits the rate of all frames, and
 * dispatches them. The gateway's sweep calls it once a second for everything that depends on time.
 */
import type { Duplex } from "node:stream"
import { DateTime, Effect, Fiber, Result } from "effect"
import type { WebSocket } from "ws"
import type { PlayerCaller } from "#rpc/auth"
import { type CodedError, RateLimited, Unauthorized } from "#rpc/errors/codes"
import { socket as limits } from "#rpc/limits"
import { type CloseCode, closeCodes, type HeldSeat } from "#rpc/realtime"
import type { FlushScheduler } from "#server/platform/flush"
import { Frame, Outbox, pingFrame, type WriteStats } from "#server/platform/socket-outbox"
import { FrameBucket } from "#server/platform/token-bucket"
import {
  dispatch,
  type EnabledFeatures,
  featureError,
  type FrameError,
  type FrameHandlers,
  type FrameHead,
  frameHead,
  type FrameMembers,
  parseFrame
} from "#server/links/frames"
import type { Listener } from "#server/links/listener"
import type { PlayerConnection } from "#server/links/player-connection"
import { replyFrame, warnFrame } from "#server/links/reply-frames"
import type { FrameSink } from "#server/links/subscriber"

/** What an admitted socket acts for. */
export interface Admission {
  readonly environmentId: string
  readonly player: PlayerCaller | undefined
  readonly connection: PlayerConnection | undefined
  /** The seat that was kept for the player when the socket opened. */
  readonly seat: HeldSeat | null
  /** The connection of an anonymous socket. */
  readonly listener: Listener | undefined
  readonly welcome: Frame
}

/** Monotonic counters of the frames that sockets have sent. */
export class FrameStats {
  frames = 0
  /** Frames that could not be decoded. */
  invalid = 0
  /** Frames dropped by the rate limit. */
  limited = 0
}

/** What a socket needs of the gateway. */
export interface SocketGateway {
  readonly scheduler: Pick<FlushScheduler, "scheduleOutput">
  readonly writeStats: WriteStats
  readonly frameStats: FrameStats
  readonly handlers: FrameHandlers
  readonly listenerHandlers: FrameHandlers<Listener>
  readonly now: () => number
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Checks the first frame. */
  readonly admit: (
    socket: RealtimeSocket,
    frame: FrameMembers
  ) => Effect.Effect<Admission, CodedError>
  /** Checks a new token of an open socket. */
  readonly renew: (
    admission: Admission,
    frame: FrameMembers
  ) => Effect.Effect<Admission, CodedError>
  /** The socket sends and receives nothing more; `onClosed` follows. */
  readonly onClosing: (socket: RealtimeSocket) => void
  readonly onClosed: (socket: RealtimeSocket) => void
}

const second = 1000
/** How long the client has to confirm a close before the socket is cut. */
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
  #admission: Admission | undefined
  #features: EnabledFeatures = { rooms: true, channels: true, any: true }
  #closedWith: CloseCode | undefined
  readonly #ws: WebSocket
  readonly #outbox: Outbox
  readonly #gateway: SocketGateway
  #bucket: FrameBucket
  readonly #openedAt: number
  #admitting: Fiber.Fiber<void> | undefined
  /** Frames that arrived while the first was being checked, and their bytes. */
  #early: Array<Buffer> = []
  #earlyBytes = 0
  #receivedAt: number
  #pingedAt: number
  #warnedOfExpiry = false
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
    this.#receivedAt = now
    this.#pingedAt = now
    this.#bucket = new FrameBucket(now)
    this.#outbox = new Outbox({
      socket: options.stream,
      scheduler: options.gateway.scheduler,
      stats: options.gateway.writeStats,
      onOverflow: () => this.close(closeCodes.slowConsumer, "slow_consumer")
    })
    this.#ws.on("message", (data: Buffer, isBinary) => this.#message(data, isBinary))
    this.#ws.on("ping", () => this.#control())
    this.#ws.on("pong", () => this.#control())
    // A protocol violation is an error, too: its close frame must still go out.
    this.#ws.on("error", () => this.#disconnect(false))
    this.#ws.on("close", () => {
      this.#disconnect(false)
      this.#gateway.onClosed(this)
    })
  }

  /** Who the socket acts for, once it is admitted. */
  get admission(): Admission | undefined {
    return this.#admission
  }

  /** The code this side closed with; undefined when the client closed, or the connection broke. */
  get closedWith(): CloseCode | undefined {
    return this.#closedWith
  }

  push(frame: Frame): void {
    this.#outbox.push(frame)
  }

  /** Sets what the environment offers; closes a socket that is of no use any more. */
  setFeatures(features: EnabledFeatures): void {
    this.#features = features
    if (!features.any) this.close(closeCodes.forbidden, "feature_disabled")
  }

  /** Closes the socket; the reason is the error's code. */
  close(code: CloseCode, reason: string): void {
    if (this.#closedAt !== undefined) return
    this.#closedAt = this.#gateway.now()
    this.#closedWith = code
    this.#outbox.flush()
    this.#outbox.close()
    this.#disconnect(code === closeCodes.replaced || code === closeCodes.draining)
    this.#ws.close(code, reason)
  }

  /** Acts on time: a late first frame, an idle client, an expiring token. */
  sweep(now: number): void {
    if (this.#closedAt !== undefined) {
      if (now - this.#closedAt >= closeMillis) this.#ws.terminate()
      return
    }
    if (this.#admission === undefined) {
      const waited = now - this.#openedAt
      // After the first frame has arrived, the service is late, not the client.
      if (this.#admitting !== undefined) {
        if (waited >= limits.admitSeconds * second) {
          this.close(closeCodes.draining, "unavailable")
        }
      } else if (waited >= limits.authFrameSeconds * second) {
        this.close(closeCodes.unauthorized, "unauthorized")
      }
      return
    }
    if (now - this.#receivedAt >= limits.idleSeconds * second) {
      return this.close(closeCodes.idle, "idle")
    }
    if (now - this.#pingedAt >= limits.heartbeatSeconds * second) {
      this.#pingedAt = now
      this.#outbox.push(pingFrame)
    }
    this.#sweepToken(now, this.#admission.player)
  }

  #sweepToken(now: number, player: PlayerCaller | undefined): void {
    if (player === undefined) return
    if (now >= player.expiresAt + limits.tokenGraceSeconds * second) {
      return this.close(closeCodes.tokenExpired, "token_expired")
    }
    if (this.#warnedOfExpiry || now < player.expiresAt - limits.tokenWarningSeconds * second) return
    this.#warnedOfExpiry = true
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
    this.#gateway.frameStats.frames += 1
    if (isBinary) return this.close(closeCodes.unsupported, "binary_not_supported")
    if (this.#admitting !== undefined && this.#admission === undefined) return this.#hold(data)
    const now = this.#gateway.now()
    this.#receivedAt = now
    const parsed = parseFrame(data.toString())
    if (this.#admission === undefined) {
      if (Result.isFailure(parsed) || parsed.success["t"] !== "auth") {
        return this.close(closeCodes.unauthorized, "unauthorized")
      }
      return this.#authenticate(parsed.success)
    }
    if (Result.isFailure(parsed)) return this.#refuseInvalid(parsed.failure, now)
    const head = frameHead(parsed.success)
    if (Result.isFailure(head)) return this.#refuseInvalid(head.failure, now)
    if (!this.#bucket.take(now)) return this.#drop(head.success.rid, now)
    if (head.success.t === "auth") return this.#renew(parsed.success, head.success.rid)
    this.#dispatch(head.success, parsed.success, data.length, now)
  }

  #dispatch(head: FrameHead, members: FrameMembers, frameBytes: number, now: number): void {
    const disabled = featureError(this.#features, head.t)
    if (disabled !== undefined) return this.#fail({ rid: head.rid, error: disabled })
    const { handlers, listenerHandlers } = this.#gateway
    const { connection, listener } = this.#admission ?? {}
    const error =
      connection !== undefined
        ? dispatch(handlers, head, members, connection, frameBytes)
        : listener && dispatch(listenerHandlers, head, members, listener, frameBytes)
    if (error !== undefined) this.#refuseInvalid(error, now, limits.malformedFrameCost - 1)
  }

  /** Counts a ping or pong against the rate limit; `ws` replies to pings itself. */
  #control(): void {
    if (this.#closedAt !== undefined) return
    const now = this.#gateway.now()
    this.#receivedAt = now
    if (this.#bucket.take(now)) return
    this.#gateway.frameStats.limited += 1
    if (this.#bucket.drop(now)) this.close(closeCodes.abuse, "rate_limited")
  }

  /** Holds a frame that arrives before the first one is checked. */
  #hold(data: Buffer): void {
    this.#early.push(data)
    this.#earlyBytes += data.length
    if (this.#early.length > limits.earlyFramesMax || this.#earlyBytes > limits.frameMaxBytes) {
      this.close(closeCodes.abuse, "rate_limited")
    }
  }

  #authenticate(frame: FrameMembers): void {
    const head = frameHead(frame)
    const rid = Result.isSuccess(head) ? head.success.rid : undefined
    this.#admitting = this.#gateway.run(
      this.#gateway.admit(this, frame).pipe(
        Effect.match({
          onFailure: (error) => {
            this.#fail({ rid, error })
            this.close(closeCodeOf(error), error._tag)
          },
          onSuccess: (admission) => this.#admit(admission, rid)
        })
      )
    )
  }

  #admit(admission: Admission, rid: string | undefined): void {
    if (this.#closedAt !== undefined) {
      admission.connection?.close(false)
      admission.listener?.close()
      return
    }
    this.#admission = admission
    this.#admitting = undefined
    if (admission.player === undefined) {
      const { anonymousFramesBurst, anonymousFramesPerSecond } = limits
      const now = this.#gateway.now()
      this.#bucket = new FrameBucket(now, anonymousFramesPerSecond, anonymousFramesBurst)
    }
    this.push(admission.welcome)
    if (rid !== undefined) this.push(replyFrame(rid, { ok: true, data: {} }))
    const early = this.#early
    this.#early = []
    for (const data of early) this.#message(data, false)
  }

  #renew(frame: FrameMembers, rid: string | undefined): void {
    if (this.#admission === undefined) return
    this.#gateway.run(
      this.#gateway.renew(this.#admission, frame).pipe(
        Effect.match({
          onFailure: (error) => {
            this.#fail({ rid, error })
            if (error instanceof Unauthorized) this.close(closeCodeOf(error), error._tag)
          },
          onSuccess: (renewed) => {
            this.#admission = renewed
            this.#warnedOfExpiry = false
            this.push(renewed.welcome)
            if (rid !== undefined) this.push(replyFrame(rid, { ok: true, data: {} }))
          }
        })
      )
    )
  }

  /** Refuses a frame that could not be decoded; it costs many times what a valid one does. */
  #refuseInvalid(invalid: FrameError, now: number, cost: number = limits.malformedFrameCost): void {
    this.#gateway.frameStats.invalid += 1
    if (this.#bucket.take(now, cost)) this.#fail(invalid)
    else this.#drop(invalid.rid, now)
  }

  /** Drops a frame beyond the rate limit; closes a client that keeps sending them. */
  #drop(rid: string | undefined, now: number): void {
    this.#gateway.frameStats.limited += 1
    if (this.#bucket.drop(now)) return this.close(closeCodes.abuse, "rate_limited")
    const details = { retryAfterSeconds: this.#bucket.retryAfterSeconds }
    this.#fail({ rid, error: new RateLimited({ details }) })
  }

  #fail({ error, rid }: FrameError): void {
    this.push(rid === undefined ? warnFrame(error) : replyFrame(rid, { ok: false, error }))
  }

  /** Ends the connection; a player who is `replaced`, or reconnects soon, keeps its seat quietly. */
  #disconnect(replaced: boolean): void {
    this.#closedAt ??= this.#gateway.now()
    this.#early = []
    this.#outbox.close()
    if (this.#admitting !== undefined && this.#admission === undefined) {
      this.#gateway.run(Fiber.interrupt(this.#admitting))
    }
    this.#admission?.connection?.close(replaced)
    this.#admission?.listener?.close()
    this.#gateway.onClosing(this)
  }
}
