/**
 * A player's socket in the simulated cluster: the `FrameSink` on a node and the connection to it. It
 * behaves like the gateway's socket from the first frame to the close, and carries text only.
 */
import { Clock, Effect, type Fiber, Result } from "effect"
import type { FeatureError, FeatureErrors } from "#rpc/config-document/feature-errors"
import { PlayerId } from "#rpc/ids"
import { closeCodes, type CloseCode } from "#rpc/realtime"
import { Frame } from "#server/platform/socket-outbox"
import { dispatch, frameFeatureError, frameHead, parseFrame } from "#server/gateway/frames"
import { waitingSince, type WaitingPlayers } from "#server/cluster/waiting-players"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { replyFrame } from "#server/links/reply-frames"
import type { ConnectionEnd, FrameSink } from "#server/links/subscriber"
import { featureErrorsOf, openConnection, welcome } from "#server/gateway/admission"
import { endOf } from "#server/gateway/client-socket"
import { Frames } from "#server/gateway/frame-handlers"
import type { Chance } from "./random.ts"
import { environmentId } from "./environment.ts"
import type { Runner, Seat } from "./runner.ts"
import type { Simulator } from "./simulator.ts"

/** What a socket delivers to its player; code 1006 means a broken connection. */
export interface SocketEvents {
  /** `sentAt` is when the node sent it. */
  readonly frame: (text: string, sentAt: number) => void
  readonly closed: (code: number) => void
}

/** Frames buffered for a player who does not read. */
const outboxFrames = 40

export class PlayerSocket implements FrameSink, Seat {
  readonly runner: Runner
  readonly #simulator: Simulator
  readonly #chance: Chance
  readonly #events: SocketEvents
  connection: PlayerConnection | undefined
  /** State on the side of the player. */
  open = true
  /** State on the side of the node. */
  #nodeOpen = true
  #reading = true
  #unread: Array<() => void> = []
  #featureErrors: FeatureErrors = new Map()
  #upAt = 0
  #downAt = 0

  constructor(options: {
    readonly playerId: string
    readonly runner: Runner
    readonly simulator: Simulator
    readonly chance: Chance
    readonly events: SocketEvents
  }) {
    this.runner = options.runner
    this.#simulator = options.simulator
    this.#chance = options.chance
    this.#events = options.events
    this.runner.sockets.add(this)
    this.#up(() => this.#admit(options.playerId))
  }

  /** Sends text to the node. */
  say(frame: Readonly<Record<string, unknown>>): void {
    const text = JSON.stringify(frame)
    this.#up(() => this.#message(text))
  }

  /** The player disconnects, with a close that the node soon sees, or silently. */
  leave(noticeMillis: number): void {
    if (!this.open) return
    this.open = false
    this.#simulator.after(noticeMillis, () => this.#gone("lost"), { process: this.runner.process })
  }

  /** The player pauses or resumes reading. */
  read(reading: boolean): void {
    this.#reading = reading
    if (!reading) return
    const unread = this.#unread
    this.#unread = []
    for (const deliver of unread) this.#down(deliver)
  }

  push(frame: Frame): void {
    if (!this.#nodeOpen) return
    const sentAt = this.#simulator.now
    const deliver = () => this.#events.frame(frame.text, sentAt)
    if (this.#reading) return this.#down(deliver)
    this.#unread.push(deliver)
    if (this.#unread.length > outboxFrames) this.close(closeCodes.slowConsumer, "slow_consumer")
  }

  setFeatureErrors(errors: FeatureErrors): void {
    this.#featureErrors = errors
  }

  close(code: CloseCode, _reason: string): void {
    if (!this.#nodeOpen) return
    this.#gone(endOf(code))
    this.#down(() => this.#closed(code))
  }

  drop(how: "draining" | "reset" | "silence"): void {
    if (how === "draining") return this.close(closeCodes.draining, "draining")
    this.runner.sockets.delete(this)
    this.#simulator.after(how === "reset" ? 2 : this.#chance.integer(500, 6000), () =>
      this.#closed(1006)
    )
  }

  #closed(code: number): void {
    if (!this.open) return
    this.open = false
    this.#events.closed(code)
  }

  #delay(): number {
    return this.#chance.happens(0.05) ? this.#chance.integer(5, 120) : this.#chance.fraction() * 10
  }

  /** To the node, in order. */
  #up(happen: () => void): void {
    this.#upAt = Math.max(this.#upAt, this.#simulator.now + this.#delay())
    this.#simulator.after(this.#upAt - this.#simulator.now, happen, {
      process: this.runner.process
    })
  }

  /** To the player, in order. */
  #down(happen: () => void): void {
    this.#downAt = Math.max(this.#downAt, this.#simulator.now + this.#delay())
    this.#simulator.after(this.#downAt - this.#simulator.now, () => {
      if (this.open) happen()
    })
  }

  #admitting: Fiber.Fiber<void> | undefined

  #admit(id: string): void {
    const player = {
      playerId: PlayerId.make(id),
      environmentId,
      sessionId: undefined,
      isGuest: true,
      expiresAt: Number.POSITIVE_INFINITY
    }
    const admission = Effect.gen({ self: this }, function* () {
      this.setFeatureErrors(yield* featureErrorsOf(environmentId))
      yield* Effect.sleep(this.runner.admissionMillis())
      const { connection, seat } = yield* openConnection(player, this)
      const { connectionId } = connection
      const event = yield* welcome({ connectionId, player, tokenExpiresAt: null, seat })
      if (!this.#nodeOpen) return connection.close("lost")
      this.connection = connection
      this.push(Frame.of(event))
      this.setFeatureErrors(yield* featureErrorsOf(environmentId))
    })
    this.runner.run(
      Effect.gen({ self: this }, function* () {
        const hub = yield* Hub
        const services = yield* Effect.context<Effect.Services<typeof admission> | WaitingPlayers>()
        this.#admitting = hub.run(
          admission.pipe(
            waitingSince(environmentId, yield* Clock.currentTimeMillis),
            Effect.catchCause(() => Effect.sync(() => this.close(closeCodes.draining, "failed"))),
            Effect.provideContext(services)
          )
        )
      })
    )
  }

  #message(text: string): void {
    if (!this.#nodeOpen) return
    const { connection } = this
    this.runner.run(
      Effect.map(Frames, (handlers) => {
        if (connection === undefined) throw new Error("A frame came before the welcome")
        const members = Result.getOrThrow(parseFrame(text))
        const head = Result.getOrThrow(frameHead(members))
        const disabled = frameFeatureError(this.#featureErrors, head.t)
        if (disabled !== undefined) return this.#refuse(head.rid, disabled)
        const broken = dispatch(handlers, head, members, connection, Buffer.byteLength(text))
        if (broken !== undefined) throw new Error(`Invalid frame: ${text}`)
      })
    )
  }

  #refuse(rid: string | undefined, error: FeatureError): void {
    if (rid !== undefined) this.push(replyFrame(rid, { ok: false, error }))
  }

  #gone(end: ConnectionEnd): void {
    if (!this.#nodeOpen) return
    this.#nodeOpen = false
    this.runner.sockets.delete(this)
    const { connection } = this
    this.runner.run(
      Effect.map(Hub, (hub) => {
        if (connection === undefined && this.#admitting !== undefined) {
          this.#admitting.interruptUnsafe()
        }
        connection?.close(end)
        if (connection !== undefined) hub.connections.delete(connection)
      })
    )
  }
}
