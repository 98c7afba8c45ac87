/**
 * One WebSocket of `/v1/realtime`: authenticates the first frame, and dispatches all others. The bounds
 * of its client are those of both endpoints.
 */
import { DateTime, Effect, Fiber, Result } from "effect"
import type { PlayerCaller } from "#rpc/auth"
import { tokenWarningSeconds, frameMaxBytes } from "#rpc/client-limits"
import { type CodedError, RateLimited, Unauthorized } from "#rpc/errors/codes"
import { closeCodes, type HeldSeat } from "#rpc/realtime"
import { Frame } from "#server/platform/socket-outbox"
import type { FrameHandlers } from "#server/links/frame-handler"
import {
  dispatch,
  frameFeatureError,
  type FrameError,
  type FrameHead,
  frameHead,
  type FrameMembers,
  parseFrame
} from "./frames.ts"
import type { Listener } from "#server/links/listener"
import { replyFrame, warnFrame } from "#server/links/reply-frames"
import { socketLimits } from "#server/platform/socket-limits"
import {
  type Admission,
  ClientSocket,
  closeCodeOf,
  type SocketHost,
  type UpgradedSocket
} from "./client-socket.ts"

/** Identity for which an admitted socket of this endpoint acts. */
export interface RealtimeAdmission extends Admission {
  /** The seat that was kept for the player when the socket opened. */
  readonly seat: HeldSeat | null
}

/** An admission and the frame that announces it, which nobody keeps. */
export interface Admitted {
  readonly admission: RealtimeAdmission
  readonly welcome: Frame
}

/** Dependencies of a socket of this endpoint beside its node. */
export interface RealtimeEndpoint {
  readonly handlers: FrameHandlers
  readonly listenerHandlers: FrameHandlers<Listener>
  /** Returns Unix milliseconds. */
  readonly time: () => number
  /** Checks the first frame. */
  readonly admit: (
    socket: RealtimeSocket,
    frame: FrameMembers
  ) => Effect.Effect<Admitted, CodedError>
  /** Checks a new token of an open socket. */
  readonly renew: (
    admission: RealtimeAdmission,
    frame: FrameMembers
  ) => Effect.Effect<Admitted, CodedError>
}

const second = 1000

export class RealtimeSocket extends ClientSocket<RealtimeAdmission> {
  readonly #host: SocketHost
  readonly #endpoint: RealtimeEndpoint
  #admitting: Fiber.Fiber<void> | undefined
  /** Frames that arrived while the first was being checked, and their bytes. */
  #early: Array<Buffer> = []
  #earlyBytes = 0
  #warnedOfExpiry = false

  constructor(host: SocketHost, endpoint: RealtimeEndpoint, upgraded: UpgradedSocket) {
    super(host, upgraded)
    this.#host = host
    this.#endpoint = endpoint
  }

  protected sweepAdmitted({ player }: RealtimeAdmission): void {
    if (player === undefined) return
    const time = this.#endpoint.time()
    if (time >= player.expiresAt + socketLimits.tokenGraceSeconds * second) {
      return this.close(closeCodes.tokenExpired, "token_expired")
    }
    if (!this.#warnedOfExpiry && time >= player.expiresAt - tokenWarningSeconds * second) {
      this.#warnOfExpiry(player)
    }
  }

  #warnOfExpiry({ expiresAt }: PlayerCaller): void {
    this.#warnedOfExpiry = true
    this.push(
      Frame.of({
        t: "warn",
        code: "token_expiring",
        message: "Send auth with a new access token.",
        details: { tokenExpiresAt: DateTime.formatIso(DateTime.makeUnsafe(expiresAt)) }
      })
    )
  }

  protected receive(data: Buffer, now: number): void {
    if (this.isChecking) return this.#hold(data)
    const parsed = parseFrame(data.toString())
    if (this.admission === undefined) {
      if (Result.isFailure(parsed) || parsed.success["t"] !== "auth") {
        return this.close(closeCodes.unauthorized, "unauthorized")
      }
      return this.#authenticate(parsed.success)
    }
    if (Result.isFailure(parsed)) return this.#refuseInvalid(parsed.failure, now)
    const head = frameHead(parsed.success)
    if (Result.isFailure(head)) return this.#refuseInvalid(head.failure, now)
    if (!this.take(now)) return this.#refuseLimited(head.success.rid, now)
    if (head.success.t === "auth") {
      return this.#renew(this.admission, parsed.success, head.success.rid)
    }
    this.#dispatch(this.admission, head.success, parsed.success, data.length, now)
  }

  #dispatch(
    { connection, listener }: RealtimeAdmission,
    head: FrameHead,
    members: FrameMembers,
    frameBytes: number,
    now: number
  ): void {
    const disabled = frameFeatureError(this.featureErrors, head.t)
    if (disabled !== undefined) return this.#fail({ rid: head.rid, error: disabled })
    const { handlers, listenerHandlers } = this.#endpoint
    const error =
      connection !== undefined
        ? dispatch(handlers, head, members, connection, frameBytes)
        : listener && dispatch(listenerHandlers, head, members, listener, frameBytes)
    if (error !== undefined) this.#refuseInvalid(error, now, socketLimits.malformedFrameCost - 1)
  }

  /** Holds a frame that arrives before the first one is checked. */
  #hold(data: Buffer): void {
    this.#early.push(data)
    this.#earlyBytes += data.length
    if (this.#early.length > socketLimits.earlyFramesMax || this.#earlyBytes > frameMaxBytes) {
      this.close(closeCodes.abuse, "rate_limited")
    }
  }

  #authenticate(frame: FrameMembers): void {
    const head = frameHead(frame)
    const rid = Result.isSuccess(head) ? head.success.rid : undefined
    this.startChecking()
    this.#admitting = this.#host.run(
      this.#endpoint.admit(this, frame).pipe(
        Effect.match({
          onFailure: (error) => {
            this.#fail({ rid, error })
            this.close(closeCodeOf(error), error._tag)
          },
          onSuccess: (admitted) => this.#open(admitted, rid)
        })
      )
    )
  }

  #open({ admission, welcome }: Admitted, rid: string | undefined): void {
    if (this.isClosed) {
      admission.connection?.close("lost")
      admission.listener?.close()
      return
    }
    this.#admitting = undefined
    this.admit(admission)
    this.push(welcome)
    if (rid !== undefined) this.push(replyFrame(rid, { ok: true, data: {} }))
    const early = this.#early
    this.#early = []
    for (const data of early) if (!this.isClosed) this.receive(data, this.#host.now())
  }

  #renew(admission: RealtimeAdmission, frame: FrameMembers, rid: string | undefined): void {
    this.#host.run(
      this.#endpoint.renew(admission, frame).pipe(
        Effect.match({
          onFailure: (error) => {
            this.#fail({ rid, error })
            if (error instanceof Unauthorized) this.close(closeCodeOf(error), error._tag)
          },
          onSuccess: (renewed) => {
            this.renew(renewed.admission)
            this.#warnedOfExpiry = false
            this.push(renewed.welcome)
            if (rid !== undefined) this.push(replyFrame(rid, { ok: true, data: {} }))
          }
        })
      )
    )
  }

  /** Refuses a frame that could not be decoded. */
  #refuseInvalid(invalid: FrameError, now: number, cost?: number): void {
    if (this.takeInvalid(now, cost)) this.#fail(invalid)
    else this.#refuseLimited(invalid.rid, now)
  }

  /** Refuses a frame beyond the rate limit. */
  #refuseLimited(rid: string | undefined, now: number): void {
    const retryAfterSeconds = this.drop(now)
    if (retryAfterSeconds === undefined) return
    this.#fail({ rid, error: new RateLimited({ details: { retryAfterSeconds } }) })
  }

  #fail({ error, rid }: FrameError): void {
    this.push(rid === undefined ? warnFrame(error) : replyFrame(rid, { ok: false, error }))
  }

  protected disconnected(): void {
    this.#early = []
    const admitting = this.#admitting
    this.#admitting = undefined
    if (admitting !== undefined) this.#host.run(Fiber.interrupt(admitting))
  }
}
