/**
 * The line to one channel for all of a node's connections in it: one stream in, one batch out a turn.
 * What everyone hears comes once, and the link knows who is there: players and anonymous listeners.
 */
import { Effect, Stream } from "effect"
import { ChannelNotFound, type CodedError, Unavailable } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import type { LocalChannels } from "#entities/channel/entity"
import type { ChannelOutput, GatewayCommand } from "#entities/channel/messages"
import type { Channel } from "#entities/channel/protocol"
import { Frame } from "#server/platform/outbox"
import type { FrameBucket } from "#server/platform/token-bucket"
import { type ReplyCallback, EntityLink } from "./entity-link.ts"
import type { NodeContext } from "./room-link.ts"

export type ChannelClient = Effect.Success<typeof Channel.client>

/** A connection's place in a channel, from the moment it asks for it. */
export interface ChannelSeat {
  readonly line: ChannelLink
  /** What the connection may send. */
  readonly bucket: FrameBucket
}

/** A connection as channels see it. */
export interface ChannelSubscriber {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  /** The player behind it; without one it is anonymous, and listens. */
  readonly player: ChannelPlayer | undefined
  /** By name. */
  readonly channels: Map<string, ChannelSeat>
  readonly push: (frame: Frame) => void
  readonly warn: (error: CodedError) => void
}

export interface ChannelPlayer {
  readonly playerId: string
  readonly displayName: string
  /** May talk where other players make the rules. */
  readonly openChat: boolean
}

/** Who is in, since when the channel says so, and the place that goes with it. */
interface Member {
  readonly subscriber: ChannelSubscriber
  readonly player: ChannelPlayer
  readonly joinedAt: number
  readonly seat: ChannelSeat | undefined
}

/** What can be sent again when it is unknown whether it was done. */
const repeatable = ({ t }: GatewayCommand): boolean => t !== "send"

const coded = (error: CodedError): CodedError =>
  error._tag === "channel_not_found" ? error : new Unavailable()

export class ChannelLink {
  readonly name: string
  readonly environmentId: string
  readonly #link: EntityLink<GatewayCommand, ChannelOutput, void>
  readonly #members = new Map<string, Member>()
  readonly #listeners = new Map<string, ChannelSubscriber>()
  /** Connections that have asked to come in, by id. */
  readonly #coming = new Map<string, ChannelSubscriber>()
  /** How many of these are anonymous. */
  #listenersComing = 0
  /** How many listeners the channel was last told of. */
  #told = 0
  /** The number of the attachment. */
  #watch = 0
  #telling = false
  readonly #ended: (link: ChannelLink) => void

  constructor(options: {
    readonly id: string
    readonly name: string
    readonly environmentId: string
    readonly client: ChannelClient
    readonly local: LocalChannels["Service"]
    readonly surroundings: NodeContext
    readonly ended: (link: ChannelLink) => void
  }) {
    const { client, environmentId, id, local, name, surroundings } = options
    const { nextWatch, node } = surroundings
    this.name = name
    this.environmentId = environmentId
    this.#ended = options.ended
    this.#link = new EntityLink({
      ...surroundings,
      target: {
        local: () => {
          const actor = local.actors.get(id)
          return actor === undefined || actor.fenced ? undefined : actor
        },
        input: (inputs, call) =>
          client(id)
            .Input({ node, watch: this.#watch, call, inputs })
            .pipe(Effect.mapError(() => new Unavailable())),
        watch: (epoch) => {
          const players = Array.from(
            this.#members.values(),
            ({ joinedAt, player, subscriber }) => ({
              playerId: player.playerId,
              displayName: player.displayName,
              openChat: player.openChat,
              connectionId: subscriber.connectionId,
              joinedAt
            })
          )
          const listeners = this.#listeners.size
          this.#told = listeners
          this.#watch = nextWatch()
          return client(id)
            .Watch({ node, watch: this.#watch, epoch, players, listeners })
            .pipe(Stream.mapError(coded))
        },
        receive: (items) => this.#receive(items),
        repeatable,
        attached: () => this.#recount(),
        lost: (error) => this.#lost(error, true)
      }
    })
  }

  /** Begins to watch; the link is in the hub's map by now. */
  start(): void {
    this.#link.start()
  }

  get ended(): boolean {
    return this.#link.ended
  }

  receive(epoch: number, items: ReadonlyArray<ChannelOutput>): void {
    this.#link.receive(epoch, items)
  }

  send(command: GatewayCommand, answered?: ReplyCallback<void>): void {
    this.#link.send(command, answered)
  }

  /** Asks for a connection to come in; it is in, and has its snapshot, when this succeeds. */
  join(subscriber: ChannelSubscriber): Effect.Effect<void, CodedError> {
    const { connectionId, player } = subscriber
    return Effect.suspend(() => {
      this.#coming.set(connectionId, subscriber)
      if (player === undefined) this.#listenersComing += 1
      const listeners = this.#listeners.size + this.#listenersComing
      const command: GatewayCommand =
        player === undefined
          ? { t: "listen", connectionId, listeners }
          : { t: "join", connectionId, ...player }
      if (player === undefined) this.#told = listeners
      return this.#link.request(command)
    }).pipe(Effect.ensuring(Effect.sync(() => this.#come(subscriber))))
  }

  /** Takes a connection out; answers when the channel knows. */
  leave(
    { connectionId, player }: ChannelSubscriber,
    reason: "left" | "banned" | "deleted",
    answered?: ReplyCallback<void>
  ): void {
    if (player === undefined) {
      this.#listeners.delete(connectionId)
      this.#recount()
      answered?.({ ok: true, data: undefined })
      return this.rest()
    }
    const { playerId } = player
    this.#link.send({ t: "leave", playerId, connectionId, reason }, (answer) => {
      answered?.(answer)
      this.rest()
    })
  }

  /** A connection is gone: its player stays a member for a while. */
  disconnect({ connectionId, player }: ChannelSubscriber): void {
    if (player === undefined) {
      this.#listeners.delete(connectionId)
      this.#recount()
      return this.rest()
    }
    const { playerId } = player
    if (this.#members.get(playerId)?.subscriber.connectionId === connectionId) {
      this.#members.delete(playerId)
    }
    this.#link.send({ t: "disconnect", playerId, connectionId }, () => this.rest())
  }

  /** Ends the link when nobody is left to hear or be heard. */
  rest(): void {
    const nobody = this.#members.size + this.#listeners.size + this.#coming.size === 0
    if (!nobody || !this.#link.idle || this.#link.ended) return
    this.#link.end()
    this.#ended(this)
  }

  /** A connection has come in, or has not. */
  #come({ connectionId, player }: ChannelSubscriber): void {
    if (!this.#coming.delete(connectionId)) return
    if (player === undefined) {
      this.#listenersComing -= 1
      this.#recount()
    }
    this.rest()
  }

  /** Tells the channel how many listen here, when that has changed; one such word at a time. */
  #recount(): void {
    const listeners = this.#listeners.size + this.#listenersComing
    if (this.#telling || listeners === this.#told || !this.#link.attached) return
    this.#telling = true
    this.#told = listeners
    this.#link.send({ t: "listeners", listeners }, () => {
      this.#telling = false
      this.#recount()
      this.rest()
    })
  }

  #receive(items: ReadonlyArray<ChannelOutput>): void {
    for (const item of items) {
      switch (item.kind) {
        case "event":
          this.#tell(item.to, item.listeners, new Frame(item.frame))
          break
        case "enter":
          this.#enter(item)
          break
        case "exit":
          this.#exit(item.player, item.connection)
          break
        case "exitListeners":
          this.#exitListeners()
          break
        case "reply":
          this.#link.answer(item.seq, { ok: true, data: undefined })
          break
        case "refuse": {
          const { code, details, message } = item.error
          const rest = details === undefined ? {} : { details }
          this.#refuse(item.seq, item.player, { _tag: code, message, ...rest })
          break
        }
        case "end":
          return this.#lost(new ChannelNotFound(), false)
      }
    }
    this.rest()
  }

  #tell(to: ReadonlyArray<string> | null, listeners: boolean, frame: Frame): void {
    if (to === null) for (const { subscriber } of this.#members.values()) subscriber.push(frame)
    else for (const id of to) this.#members.get(id)?.subscriber.push(frame)
    if (listeners) for (const listener of this.#listeners.values()) listener.push(frame)
  }

  #enter(item: Extract<ChannelOutput, { kind: "enter" }>): void {
    const frame = new Frame(item.frame)
    for (const { connection, joinedAt, player } of item.players) {
      this.#enterPlayer(player, connection, joinedAt, frame)
    }
    for (const connection of item.listeners) {
      const subscriber = this.#coming.get(connection)
      if (subscriber?.channels.get(this.name)?.line !== this) continue
      this.#coming.delete(connection)
      this.#listenersComing -= 1
      this.#listeners.set(connection, subscriber)
      subscriber.push(frame)
    }
    this.#recount()
  }

  /** A player comes in: from here on its connection hears the channel. */
  #enterPlayer(playerId: string, connectionId: string, joinedAt: number, frame: Frame): void {
    const subscriber = this.#coming.get(connectionId) ?? this.#memberOn(playerId, connectionId)
    if (subscriber?.player === undefined) {
      return this.send({ t: "disconnect", playerId, connectionId }, () => this.rest())
    }
    const seat = subscriber.channels.get(this.name)
    if (seat?.line !== this) {
      const reason = "left"
      return this.send({ t: "leave", playerId, connectionId, reason }, () => this.rest())
    }
    this.#members.set(playerId, { subscriber, player: subscriber.player, joinedAt, seat })
    subscriber.push(frame)
  }

  /** The connection, when the player is in with it: a join that was sent twice is told twice. */
  #memberOn(playerId: string, connectionId: string): ChannelSubscriber | undefined {
    const subscriber = this.#members.get(playerId)?.subscriber
    return subscriber?.connectionId === connectionId ? subscriber : undefined
  }

  #exit(playerId: string, connectionId: string): void {
    const member = this.#members.get(playerId)
    if (member?.subscriber.connectionId !== connectionId) return
    this.#members.delete(playerId)
    this.#free(member.subscriber, member.seat)
  }

  #exitListeners(): void {
    const listeners = Array.from(this.#listeners.values())
    this.#listeners.clear()
    for (const listener of listeners) this.#free(listener, listener.channels.get(this.name))
    this.#recount()
  }

  /** The place is free, unless the connection has asked for it anew. */
  #free({ channels }: ChannelSubscriber, seat: ChannelSeat | undefined): void {
    if (seat?.line === this && channels.get(this.name) === seat) channels.delete(this.name)
  }

  #refuse(seq: number, playerId: string | null, error: CodedError): void {
    if (seq > 0) this.#link.answer(seq, { ok: false, error })
    else if (playerId !== null) this.#members.get(playerId)?.subscriber.warn(error)
  }

  /** The channel is no more: closed, as those who were in have been told, or lost, as they are now. */
  #lost(error: CodedError, tell: boolean): void {
    const members = Array.from(this.#members.values())
    this.#members.clear()
    const closed = Frame.of({ t: "channel_closed", channel: this.name, reason: "lost" })
    for (const { seat, subscriber } of members) {
      if (tell) subscriber.push(closed)
      this.#free(subscriber, seat)
    }
    if (tell) for (const listener of this.#listeners.values()) listener.push(closed)
    this.#exitListeners()
    this.#link.end(error)
    this.#ended(this)
  }
}
