/**
 * A player's connection, whichever door it came through: the room it is in, the ticket it holds, the
 * work it has under way. When it closes, its seat waits for the player and its ticket is cancelled.
 */
import { type DateTime, type Effect, Fiber, Semaphore } from "effect"
import type { AgeBand } from "#rpc/ages"
import { type CodedError, toWire } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import type { CloseCode, Warn } from "#rpc/realtime"
import { noReservation, type Reservation } from "#entities/player-session/state"
import { Frame } from "#server/platform/outbox"
import type { ChannelPlayer, ChannelSeat, ChannelSubscriber } from "./channel-link.ts"
import type { RoomHandle, Subscriber } from "./subscriber.ts"

/** Where a connection's frames go: a socket, or the events stream of native RPC. */
export interface FrameSink {
  /** Where the other side is, as throttles count it; not known of native RPC. */
  readonly address?: string
  readonly push: (frame: Frame) => void
  /** The way out is closed from our side. */
  readonly close: (code: CloseCode, reason: string, error: CodedError) => void
}

/** By which session the player has come; there is none where a secret key acts for the player. */
export interface ConnectionSession {
  readonly id: SessionId
  /** When its token was shown. */
  readonly since: DateTime.Utc
}

/** Who is behind the connection. */
export interface ConnectionPlayer {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  readonly session: ConnectionSession | undefined
  readonly displayName: string
}

/** A wait in a queue. */
export interface HeldTicket {
  readonly ticketId: string
  readonly mode: string
}

export class PlayerConnection implements Subscriber, ChannelSubscriber {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  session: ConnectionSession | undefined
  readonly displayName: string
  /** The player's address must not be seen: peers reach it through a relay only. */
  relayOnly = true
  /** What follows from it, with the config's audience, is not known at first. */
  declaredAgeBand: AgeBand | null = null
  /** As channels see the player. */
  player: ChannelPlayer
  readonly channels = new Map<string, ChannelSeat>()
  room: RoomHandle | undefined
  ticket: HeldTicket | undefined
  /** The place that the player's session has granted and that was not given back. */
  reservation: Reservation = noReservation
  /** A place given back of which the session has not heard yet. */
  pendingRelease: Reservation = noReservation
  /** How often the place was told to an activation of the session. */
  attachments = 0
  /** Places change one after the other. */
  readonly moves = Semaphore.makeUnsafe(1)
  /** Frames that move the player are done in the order they came. */
  readonly steps = Semaphore.makeUnsafe(1)
  closed = false
  /** Size of the frame being handled: no part of it is larger. */
  currentFrameBytes = Number.POSITIVE_INFINITY
  readonly #door: FrameSink
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #released: (connection: PlayerConnection, roomId: string) => Effect.Effect<void>
  readonly #ended: (connection: PlayerConnection) => void
  readonly #work = new Set<Fiber.Fiber<void>>()

  constructor(options: {
    readonly player: ConnectionPlayer
    readonly door: FrameSink
    readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
    /** The player's session learns that a seat is free. */
    readonly released: (connection: PlayerConnection, roomId: string) => Effect.Effect<void>
    /** The connection is closed: the player's session learns of it. */
    readonly ended: (connection: PlayerConnection) => void
  }) {
    this.connectionId = options.player.connectionId
    this.environmentId = options.player.environmentId
    this.playerId = options.player.playerId
    this.session = options.player.session
    this.displayName = options.player.displayName
    this.player = { playerId: this.playerId, displayName: this.displayName, openChat: false }
    this.#door = options.door
    this.#run = options.run
    this.#released = options.released
    this.#ended = options.ended
  }

  get address(): string | undefined {
    return this.#door.address
  }

  push(frame: Frame): void {
    this.#door.push(frame)
  }

  warn(error: CodedError): void {
    const warning: Warn = { t: "warn", ...toWire(error) }
    this.#door.push(Frame.of(warning))
  }

  expects(roomId: string): boolean {
    return this.reservation.kind === "seat" && this.reservation.roomId === roomId
  }

  seated(line: RoomHandle): void {
    this.room = line
  }

  unseated(roomId: string): void {
    if (this.room?.roomId === roomId) this.room = undefined
    if (!this.closed) this.start(this.#released(this, roomId))
  }

  /** Work that ends with the connection. */
  start(effect: Effect.Effect<void>): void {
    if (this.closed) return
    const fiber = this.#run(effect)
    if (fiber.pollUnsafe() !== undefined) return
    this.#work.add(fiber)
    fiber.addObserver(() => this.#work.delete(fiber))
  }

  /** The player is out of its room and all its channels, at once: the service has decided. */
  leaveAll(reason: "banned" | "deleted"): void {
    const { connectionId, playerId } = this
    // The room may have heard it from its own node.
    this.room?.send({ t: "leave", playerId, connectionId, reason }, () => undefined)
    for (const { line } of this.channels.values()) line.leave(this, reason)
    this.channels.clear()
  }

  /** Closes the door on the player; the reason is the error's code. */
  dismiss(code: CloseCode, error: CodedError): void {
    this.#door.close(code, error._tag, error)
  }

  /** The way out is closed; `replaced` when a newer connection of the player took over. */
  close(replaced: boolean): void {
    if (this.closed) return
    this.closed = true
    this.#ended(this)
    this.room?.disconnect(this, replaced)
    this.room = undefined
    for (const { line } of this.channels.values()) line.disconnect(this)
    this.channels.clear()
    for (const fiber of this.#work) this.#run(Fiber.interrupt(fiber))
    this.#work.clear()
  }
}
