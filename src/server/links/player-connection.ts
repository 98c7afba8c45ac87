/**
 * Connection of a player, over a WebSocket or native RPC: its room, its ticket, its channels and
 * the work that ends with it. When it closes, the room keeps its seat and the queue cancels its
 * ticket.
 */
import { type DateTime, Effect, Semaphore } from "effect"
import type { AgeBand } from "#rpc/ages"
import type { CodedError } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import type { CloseCode } from "#rpc/realtime"
import { ChannelMemberships } from "./channel-memberships.ts"
import { ConnectionWork, type RunFork } from "./connection-work.ts"
import { warnFrame } from "./reply-frames.ts"
import type { ReservationManager } from "./reservations.ts"
import type {
  ChannelHandle,
  ChannelPlayer,
  ChannelSubscriber,
  ConnectionEnd,
  FrameSink,
  RoomHandle,
  RoomSubscriber
} from "./subscriber.ts"

/** Frames for a room that wait while the connection takes its seat there. */
const framesAfterEntryMax = 16

/** The session behind a player's token; a secret key acts for a player without one. */
export interface ConnectionSession {
  readonly id: SessionId
  /** Time at which its token was verified. */
  readonly since: DateTime.Utc
}

/** The player of a connection. */
export interface ConnectionPlayer {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  readonly session: ConnectionSession | undefined
  readonly displayName: string
  /** Id of the player's last ban, active or not, when it connected. */
  readonly lastBanId: string | undefined
}

/** A ticket that waits in the queue of a mode. */
export interface HeldTicket {
  readonly ticketId: string
  readonly mode: string
}

/** Permissions from the player's age band and the environment's audience. */
export interface AgeRestrictions {
  readonly declaredAgeBand: AgeBand | null
  /**
   * Whether peers may not learn the player's address, and reach the player through a relay only.
   */
  readonly relayOnly: boolean
  /** Whether the player may talk in channels that players have created. */
  readonly openChat: boolean
}

export class PlayerConnection implements RoomSubscriber, ChannelSubscriber {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  readonly lastBanId: string | undefined
  readonly sink: FrameSink
  readonly reservations: ReservationManager
  #session: ConnectionSession | undefined
  /** Restrictions of the connection: the strictest, until the player's age band is known. */
  #restrictions: AgeRestrictions = { declaredAgeBand: null, relayOnly: true, openChat: false }
  #channelPlayer: ChannelPlayer
  /** Number of times that the player's blocks were read. */
  #blockReads = 0
  #room: RoomHandle | undefined
  /** Channels of the connection, created on the first use. */
  #channels: ChannelMemberships<ChannelHandle> | undefined
  #ticket: HeldTicket | undefined
  #closed = false
  /** Frames under way that take a seat. */
  #entering = 0
  /** Frames for the room that arrived while a seat was being taken. */
  #afterEntry: Array<() => void> = []
  readonly #lock = Semaphore.makeUnsafe(1)
  readonly #onClosed: (connection: PlayerConnection) => void
  readonly #work: ConnectionWork

  constructor(options: {
    readonly player: ConnectionPlayer
    readonly sink: FrameSink
    readonly reservations: ReservationManager
    readonly run: RunFork
    /** Callback that runs once, before the connection leaves its room and channels. */
    readonly onClosed: (connection: PlayerConnection) => void
  }) {
    const { connectionId, displayName, environmentId, lastBanId, playerId } = options.player
    this.connectionId = connectionId
    this.environmentId = environmentId
    this.playerId = playerId
    this.lastBanId = lastBanId
    this.sink = options.sink
    this.reservations = options.reservations
    this.#session = options.player.session
    this.#channelPlayer = { playerId, displayName, openChat: false, blocks: [] }
    this.#work = new ConnectionWork(options.run)
    this.#onClosed = options.onClosed
  }

  get address(): string | undefined {
    return this.sink.address
  }

  get session(): ConnectionSession | undefined {
    return this.#session
  }

  /** The player as channels see it. */
  get player(): ChannelPlayer {
    return this.#channelPlayer
  }

  get displayName(): string {
    return this.#channelPlayer.displayName
  }

  get blocks(): ReadonlyArray<string> {
    return this.#channelPlayer.blocks
  }

  get relayOnly(): boolean {
    return this.#restrictions.relayOnly
  }

  get declaredAgeBand(): AgeBand | null {
    return this.#restrictions.declaredAgeBand
  }

  get channels(): ChannelMemberships<ChannelHandle> {
    this.#channels ??= new ChannelMemberships()
    return this.#channels
  }

  get room(): RoomHandle | undefined {
    return this.#room
  }

  get ticket(): HeldTicket | undefined {
    return this.#ticket
  }

  /** Stores the session of a new token from the player. */
  renewSession(session: ConnectionSession | undefined): void {
    this.#session = session
  }

  /** Sets the player's name. Returns whether it is a new one. */
  rename(displayName: string): boolean {
    if (this.displayName === displayName) return false
    this.#channelPlayer = { ...this.#channelPlayer, displayName }
    return true
  }

  /** Sets the permissions by the player's age; returns the previous ones. */
  restrict(restrictions: AgeRestrictions): AgeRestrictions {
    const before = this.#restrictions
    const { openChat } = restrictions
    this.#restrictions = restrictions
    if (before.openChat !== openChat) this.#channelPlayer = { ...this.#channelPlayer, openChat }
    return before
  }

  /**
   * Begins to read whom the player has blocked. Returns what takes the result, and whether it changed
   * something: the result of an earlier read that comes later is older.
   */
  readBlocks(): (blocks: ReadonlyArray<string>) => boolean {
    const read = ++this.#blockReads
    return (blocks) => {
      const before = this.blocks
      const isSame =
        blocks.length === before.length && blocks.every((id, index) => id === before[index])
      if (isSame || read !== this.#blockReads) return false
      this.#channelPlayer = { ...this.#channelPlayer, blocks }
      return true
    }
  }

  /** Holds a ticket, so that `cancelMatch` and `leave` can find it. */
  holdTicket(ticket: HeldTicket): void {
    this.#ticket = ticket
  }

  /** Drops the ticket whose wait has ended. */
  dropTicket(ticketId: string): void {
    if (this.#ticket?.ticketId === ticketId) this.#ticket = undefined
  }

  warn(error: CodedError): void {
    this.sink.push(warnFrame(error))
  }

  expects(roomId: string): boolean {
    return this.reservations.hasSeat(roomId)
  }

  seated(room: RoomHandle): void {
    this.#room = room
  }

  /** Records that the player has left its room on its own. */
  leftRoom(): void {
    this.#room = undefined
  }

  unseated(roomId: string): void {
    if (this.#room?.roomId === roomId) this.#room = undefined
    if (!this.#closed) this.start(this.reservations.release({ kind: "seat", roomId }))
  }

  /** Runs frames that change the player's room or ticket one after the other, in their order. */
  inOrder<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.#lock.withPermits(1)(effect)
  }

  /** Runs a frame that takes a seat. Frames for the room that arrive meanwhile wait for it. */
  entering<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.#entering += 1
      return Effect.ensuring(
        this.inOrder(effect),
        Effect.sync(() => this.#entered())
      )
    })
  }

  /** Runs a frame for the room once a seat has been taken; false if none is, or too many wait. */
  afterEntry(run: () => void): boolean {
    if (this.#entering === 0 || this.#afterEntry.length >= framesAfterEntryMax) return false
    this.#afterEntry.push(run)
    return true
  }

  #entered(): void {
    this.#entering -= 1
    if (this.#closed || (this.#room === undefined && this.#entering > 0)) return
    const waiting = this.#afterEntry
    this.#afterEntry = []
    for (const run of waiting) run()
  }

  /** Runs work that ends with the connection. */
  start(effect: Effect.Effect<void>): void {
    if (!this.#closed) this.#work.start(effect)
  }

  /** Removes the banned or deleted player from its room and all its channels. */
  leaveAll(reason: "banned" | "deleted"): void {
    const { connectionId, playerId } = this
    // The room's own node may have removed the player already: a failure does not matter.
    this.#room?.send({ t: "leave", playerId, connectionId, reason }, () => undefined)
    for (const link of this.#channels?.removeAll() ?? []) link.leave(this, reason)
  }

  /** Closes the connection from this side; the reason is the error's code. */
  dismiss(code: CloseCode, error: CodedError): void {
    this.sink.close(code, error._tag, error)
  }

  /** Closes the connection after its sink. */
  close(end: ConnectionEnd): void {
    if (this.#closed) return
    this.#closed = true
    this.#afterEntry = []
    this.#onClosed(this)
    this.#room?.disconnect(this, end)
    this.#room = undefined
    for (const link of this.#channels?.removeAll() ?? []) link.disconnect(this, end)
    this.#work.interrupt()
  }
}
