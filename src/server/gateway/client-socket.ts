/**
 * WebSocket of a client, over either endpoint: `/v1/realtime` (JSON frames) or `/v1/rpc` (native
 * RPC). This module holds all bounds of a client from its first frame on: frame rate, credentials
 * deadline, idle time and unread bytes. The endpoint interprets the frames.
 */
import type { Duplex } from "node:stream"
import type { Effect, Fiber } from "effect"
import type { WebSocket } from "ws"
import type { PlayerCaller } from "#rpc/auth"
import type { FeatureErrors } from "#rpc/config-document/feature-errors"
import type { CodedError } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { authTimeout } from "#rpc/close-codes"
import { type CloseCode, closeCodes } from "#rpc/realtime"
import { cutConnection } from "#server/platform/cut-connection"
import type { FlushScheduler } from "#server/platform/flush"
import type { OutboxBudget } from "#server/platform/outbox-budget"
import {
  Outbox,
  type OutboxOwner,
  pingFrame,
  type Sendable,
  type WriteStats
} from "#server/platform/socket-outbox"
import { FrameBucket } from "#server/platform/frame-bucket"
import { socketFeatureError } from "./frames.ts"
import type { Listener } from "#server/links/listener"
import type { PlayerConnection } from "#server/links/player-connection"
import type { ConnectionEnd, FrameSink } from "#server/links/subscriber"
import { socketLimits } from "#server/platform/socket-limits"

/** Identity for which an admitted socket acts. */
export interface Admission {
  readonly environmentId: EnvironmentId
  /** Hash of the key that opened the socket. */
  readonly keyHash: string
  readonly player: PlayerCaller | undefined
  readonly connection: PlayerConnection | undefined
  /** The connection of an anonymous socket. */
  readonly listener: Listener | undefined
}

/** Monotonic counters of the frames that sockets have sent. */
export class FrameStats {
  frames = 0
  /** Frames that could not be decoded. */
  invalid = 0
  /** Frames dropped by the rate limit. */
  limited = 0
}

/** Dependencies of a socket on its node. */
export interface SocketHost {
  readonly scheduler: Pick<FlushScheduler, "scheduleOutput">
  readonly writeStats: WriteStats
  /** Budget of all sockets for what their clients have not read. */
  readonly outboxBudget: OutboxBudget
  readonly frameStats: FrameStats
  /** Returns monotonic milliseconds, for durations. */
  readonly now: () => number
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Whether the key of the socket is still active; closes the socket if it is not. */
  readonly checkKey: (socket: ClientSocket) => Effect.Effect<boolean>
  readonly onAdmitted: (socket: ClientSocket) => void
  /** Reports that the socket stays open, but no longer acts for its admission. */
  readonly onDismissed: (socket: ClientSocket) => void
  /** Reports that the socket sends and receives nothing more; `onClosed` follows. */
  readonly onClosing: (socket: ClientSocket) => void
  readonly onClosed: (socket: ClientSocket) => void
}

/** A socket that was just upgraded. */
export interface UpgradedSocket {
  readonly ws: WebSocket
  readonly stream: Duplex
  readonly origin: string | undefined
  readonly address: string
}

const second = 1000
/** Time in which the client has to confirm a close before the service cuts the socket. */
const closeMillis = 2 * second

/** The code with which an error of the credentials closes a socket. */
export const closeCodeOf = (error: CodedError): CloseCode => {
  switch (error._tag) {
    case "token_expired":
      return closeCodes.tokenExpired
    case "origin_not_allowed":
    case "feature_disabled":
    case "feature_unavailable":
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

/** How a connection ends whose socket the service closes with this code. */
export const endOf = (code: CloseCode): ConnectionEnd => {
  if (code === closeCodes.replaced) return "replaced"
  return code === closeCodes.draining ? "drained" : "lost"
}

export abstract class ClientSocket<A extends Admission = Admission>
  implements FrameSink, OutboxOwner
{
  readonly origin: string | undefined
  readonly address: string
  protected readonly outbox: Outbox
  protected featureErrors: FeatureErrors = new Map()
  readonly #host: SocketHost
  readonly #ws: WebSocket
  readonly #stream: Duplex
  #admission: A | undefined
  #bucket: FrameBucket
  /** Start of the wait for credentials, including their check. */
  #waitingSince: number
  #checking = false
  #receivedAt: number
  #pingedAt: number
  #closedAt: number | undefined
  #closedWith: CloseCode | undefined

  constructor(host: SocketHost, { address, origin, stream, ws }: UpgradedSocket) {
    const now = host.now()
    this.origin = origin
    this.address = address
    this.#host = host
    this.#ws = ws
    this.#stream = stream
    this.#waitingSince = now
    this.#receivedAt = now
    this.#pingedAt = now
    this.#bucket = new FrameBucket(now)
    this.outbox = new Outbox({
      socket: stream,
      scheduler: host.scheduler,
      stats: host.writeStats,
      budget: host.outboxBudget,
      owner: this
    })
    ws.on("message", (data: Buffer, isBinary) => this.#message(data, isBinary))
    ws.on("ping", () => this.#control())
    ws.on("pong", () => this.#control())
    // A protocol violation is an error, too: its close frame must still go out.
    ws.on("error", () => this.#disconnect("lost"))
    ws.on("close", () => {
      this.#disconnect("lost")
      this.outbox.release()
      host.onClosed(this)
    })
  }

  /** Handles a text frame. */
  protected abstract receive(data: Buffer, now: number): void

  /** Runs once a second while the socket is admitted, for deadlines. */
  protected abstract sweepAdmitted(admission: A): void

  /** Releases what belongs to the endpoint. */
  protected abstract disconnected(): void

  /** Identity for which the socket acts, once it is admitted. */
  get admission(): A | undefined {
    return this.#admission
  }

  /** The environment that the socket acts in; empty before its credentials are checked. */
  get environmentId(): string {
    return this.#admission?.environmentId ?? ""
  }

  /** The code this side closed with; undefined when the client closed, or the connection broke. */
  get closedWith(): CloseCode | undefined {
    return this.#closedWith
  }

  get isClosed(): boolean {
    return this.#closedAt !== undefined
  }

  /** Whether the credentials are being checked. */
  protected get isChecking(): boolean {
    return this.#checking
  }

  push(frame: Sendable): void {
    this.outbox.push(frame)
  }

  /** Sets the features that the environment cannot use; closes a socket that is of no use any more. */
  setFeatureErrors(errors: FeatureErrors): void {
    this.featureErrors = errors
    const error = socketFeatureError(errors)
    if (error !== undefined) this.close(closeCodes.forbidden, error._tag)
  }

  /** Closes the socket; the reason is the error's code. */
  close(code: CloseCode, reason: string, _error?: CodedError): void {
    if (this.isClosed) return
    this.#closedAt = this.#host.now()
    this.#closedWith = code
    this.outbox.flush()
    this.outbox.close()
    this.#disconnect(endOf(code))
    this.#ws.close(code, reason)
  }

  /** Closes the socket, since its client reads too slowly. */
  closeSlow(): void {
    this.close(closeCodes.slowConsumer, "slow_consumer")
  }

  /** Cuts the connection without waiting for the client. */
  cut(): void {
    cutConnection(this.#stream)
  }

  /** Applies deadlines: late credentials, an idle client. */
  sweep(): void {
    const now = this.#host.now()
    if (this.#closedAt !== undefined) {
      if (now - this.#closedAt >= closeMillis) this.cut()
    } else if (this.#admission === undefined) {
      this.#sweepWaiting(now - this.#waitingSince)
    } else if (now - this.#receivedAt >= socketLimits.idleSeconds * second) {
      this.close(closeCodes.idle, "idle")
    } else {
      if (now - this.#pingedAt >= socketLimits.heartbeatSeconds * second) {
        this.#pingedAt = now
        this.outbox.push(pingFrame)
      }
      this.sweepAdmitted(this.#admission)
    }
  }

  #sweepWaiting(waited: number): void {
    // While the credentials are checked, the service is late, not the client.
    if (this.#checking) {
      if (waited >= socketLimits.admitSeconds * second)
        this.close(closeCodes.draining, "unavailable")
    } else if (waited >= socketLimits.authFrameSeconds * second) {
      this.close(closeCodes.unauthorized, authTimeout)
    }
  }

  /** Records that the credentials have arrived and that their check runs. */
  protected startChecking(): void {
    this.#checking = true
  }

  /** Admits the socket, which acts for this admission. */
  protected admit(admission: A): void {
    this.#checking = false
    this.#admission = admission
    if (admission.player === undefined) {
      const { anonymousFramesBurst, anonymousFramesPerSecond } = socketLimits
      this.#bucket = new FrameBucket(
        this.#host.now(),
        anonymousFramesPerSecond,
        anonymousFramesBurst
      )
    }
    this.#host.onAdmitted(this)
  }

  /** Replaces the credentials of the socket, which acts for the same player. */
  protected renew(admission: A): void {
    this.#admission = admission
  }

  /** Revokes the identity of the socket, which must show credentials again. */
  protected dismissed(): void {
    this.#host.onDismissed(this)
    this.#checking = false
    this.#admission = undefined
    this.#waitingSince = this.#host.now()
  }

  /**
   * Consumes the tokens of a frame. Returns false when there are too few, and the caller must drop
   * the frame.
   */
  protected take(now: number, cost = 1): boolean {
    return this.#bucket.take(now, cost)
  }

  /**
   * Consumes the tokens of a frame that could not be decoded; it costs many times those of a valid
   * one.
   */
  protected takeInvalid(now: number, cost: number = socketLimits.malformedFrameCost): boolean {
    this.#host.frameStats.invalid += 1
    return this.#bucket.take(now, cost)
  }

  /** Counts a dropped frame. Returns when to try again; undefined once the client is closed for abuse. */
  protected drop(now: number): number | undefined {
    this.#host.frameStats.limited += 1
    if (!this.#bucket.drop(now)) return this.#bucket.retryAfterSeconds
    this.close(closeCodes.abuse, "rate_limited")
    return undefined
  }

  #message(data: Buffer, isBinary: boolean): void {
    if (this.isClosed) return
    this.#host.frameStats.frames += 1
    if (isBinary) return this.close(closeCodes.unsupported, "binary_not_supported")
    const now = this.#host.now()
    this.#receivedAt = now
    this.receive(data, now)
  }

  /** Counts a ping or pong against the rate limit; `ws` replies to pings itself. */
  #control(): void {
    if (this.isClosed) return
    const now = this.#host.now()
    this.#receivedAt = now
    if (!this.take(now)) this.drop(now)
  }

  #disconnect(end: ConnectionEnd): void {
    this.#closedAt ??= this.#host.now()
    this.outbox.close()
    this.disconnected()
    this.#admission?.connection?.close(end)
    this.#admission?.listener?.close()
    this.#host.onClosing(this)
  }
}
