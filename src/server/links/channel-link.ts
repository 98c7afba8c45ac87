/**
 * Link to one channel for all connections of this node in it. An event for everybody arrives once; the
 * link knows the players and the anonymous listeners that receive it here.
 */
import { Effect, Stream } from "effect"
import { ChannelNotFound, type CodedError, fromWire, Unavailable } from "#rpc/errors/codes"
import { LocalChannels } from "#entities/channel/entity"
import type { ChannelInput, ChannelOutput, GatewayCommand } from "#entities/channel/messages"
import { Channel, channelId } from "#entities/channel/protocol"
import { endsVoice, voiceClosed } from "#entities/voice-session/closed-event"
import { retryAfter } from "#entities/voice-session/model"
import { Frame } from "#server/platform/socket-outbox"
import type { ChannelMembership } from "./channel-memberships.ts"
import { EntityLink, type LinkOptions, type ReplyCallback } from "./entity-link.ts"
import { LinkRegistry } from "./link-registry.ts"
import type { NodeContexts } from "./node-contexts.ts"
import type {
  ChannelHandle,
  ChannelPlayer,
  ChannelSubscriber,
  ConnectionEnd
} from "./subscriber.ts"

export type ChannelClient = Effect.Success<typeof Channel.client>

/** A player in the channel. */
interface Member {
  readonly subscriber: ChannelSubscriber
  readonly player: ChannelPlayer
  /** Time of joining by the channel's clock, Unix milliseconds. */
  readonly joinedAt: number
  /** The connection's membership that came with it. */
  readonly membership: ChannelMembership<ChannelHandle> | undefined
}

const watchError = (error: CodedError): CodedError =>
  error._tag === "channel_not_found" ? error : new Unavailable()

export class ChannelLink
  extends EntityLink<
    GatewayCommand,
    ChannelOutput,
    void,
    LinkOptions<ChannelClient, LocalChannels["Service"]>
  >
  implements ChannelHandle
{
  readonly #members = new Map<string, Member>()
  readonly #listeners = new Map<string, ChannelSubscriber>()
  /** Connections that have asked to join, by id. */
  readonly #joining = new Map<string, ChannelSubscriber>()
  /** Number of anonymous connections among them. */
  #joiningListeners = 0
  /** Number of listeners that the channel knows of. */
  #reportedListeners = 0
  #reporting = false

  /** Closes the channel: its environment is without the feature. */
  shut() {
    return this.options.client(this.options.id).Shut()
  }

  /** Joins the channel; when this succeeds, the connection has received its snapshot. */
  join(subscriber: ChannelSubscriber): Effect.Effect<void, CodedError> {
    const { connectionId, player } = subscriber
    return Effect.suspend(() => {
      this.#joining.set(connectionId, subscriber)
      if (player === undefined) this.#joiningListeners += 1
      const listeners = this.#listeners.size + this.#joiningListeners
      const command: GatewayCommand =
        player === undefined
          ? { t: "listen", connectionId, listeners }
          : { t: "join", connectionId, ...player }
      if (player === undefined) this.#reportedListeners = listeners
      return this.request(command)
    }).pipe(Effect.ensuring(Effect.sync(() => this.#joined(subscriber))))
  }

  /** Sends the channel the new name and blocks of a player who has joined or asked to. */
  rename({ connectionId, player }: ChannelSubscriber): void {
    if (player === undefined) return
    this.send({ t: "join", connectionId, ...player, renames: true }, () => this.closeIfIdle())
  }

  /** Leaves the channel. The reply follows when the channel has processed the command. */
  leave(
    { connectionId, player }: ChannelSubscriber,
    reason: "left" | "banned" | "deleted",
    onReply?: ReplyCallback<void>
  ): void {
    if (player === undefined) {
      this.#listeners.delete(connectionId)
      this.#reportListeners()
      onReply?.({ ok: true, data: undefined })
      return this.closeIfIdle()
    }
    const { playerId } = player
    this.send({ t: "leave", playerId, connectionId, reason }, (result) => {
      onReply?.(result)
      this.closeIfIdle()
    })
  }

  /** Disconnects a closed connection; its player stays a member for a while. */
  disconnect({ connectionId, player }: ChannelSubscriber, end: ConnectionEnd): void {
    if (player === undefined) {
      this.#listeners.delete(connectionId)
      this.#reportListeners()
      return this.closeIfIdle()
    }
    const { playerId } = player
    if (this.#members.get(playerId)?.subscriber.connectionId === connectionId) {
      this.#members.delete(playerId)
    }
    const drained = end === "drained"
    this.send({ t: "disconnect", playerId, connectionId, drained }, () => this.closeIfIdle())
  }

  protected override call(inputs: ReadonlyArray<ChannelInput>, call: number) {
    return this.options
      .client(this.options.id)
      .Input({ node: this.context.node, watch: this.attachment, call, inputs })
  }

  protected override watch(epoch: number) {
    const players = Array.from(this.#members.values(), ({ joinedAt, player, subscriber }) => {
      // The name and what the age allows may have changed since the player joined.
      const now = subscriber.player ?? player
      return { ...now, connectionId: subscriber.connectionId, joinedAt }
    })
    const listeners = this.#listeners.size
    this.#reportedListeners = listeners
    return this.options
      .client(this.options.id)
      .Watch({
        node: this.context.node,
        watch: this.attachment,
        link: this.link,
        epoch,
        players,
        listeners
      })
      .pipe(Stream.mapError(watchError))
  }

  /**
   * Whether the command may be repeated. The channel knows which moderation it has executed. The
   * link never sends messages twice. Each attachment reports the newest number of listeners itself.
   */
  protected override isRepeatable({ t }: GatewayCommand): boolean {
    return t !== "send" && t !== "listeners"
  }

  protected override isInUse(): boolean {
    return this.#members.size + this.#listeners.size + this.#joining.size > 0
  }

  protected override onAttached(): void {
    this.#reportListeners()
    this.#closeLostCalls()
  }

  protected override onLost(error: CodedError): void {
    this.#close(error, true)
  }

  protected override handle(outputs: ReadonlyArray<ChannelOutput>): void {
    for (const output of outputs) {
      switch (output.kind) {
        case "event":
          this.#deliver(output)
          break
        case "enter":
          this.#enter(output)
          break
        case "exit":
          this.#exit(output.player, output.connection)
          break
        case "exitListeners":
          this.#exitListeners()
          break
        case "reply":
          this.reply(output.seq, { ok: true, data: undefined })
          break
        case "refuse":
          this.#refuse(output.seq, output.player, fromWire(output.error))
          break
        case "end":
          return this.#close(new ChannelNotFound(), false)
      }
    }
    this.closeIfIdle()
  }

  /**
   * Closes calls that ended with the activation of their channel: the link informs its members
   * here.
   */
  #closeLostCalls(): void {
    for (const { membership, subscriber } of this.#members.values()) {
      if (membership?.voice.isLostAt(this.epoch) !== true) continue
      membership.voice.end()
      const retryAfterMs = retryAfter(this.context.random())
      subscriber.sink.push(Frame.of(voiceClosed(this.name, "unavailable", retryAfterMs)))
    }
  }

  /** Handles a complete or failed join. */
  #joined({ connectionId, player }: ChannelSubscriber): void {
    if (!this.#joining.delete(connectionId)) return
    if (player === undefined) {
      this.#joiningListeners -= 1
      this.#reportListeners()
    }
    this.closeIfIdle()
  }

  /** Sends the channel the number of listeners here when it has changed, one report at a time. */
  #reportListeners(): void {
    const listeners = this.#listeners.size + this.#joiningListeners
    if (this.#reporting || listeners === this.#reportedListeners || !this.attached) return
    this.#reporting = true
    this.#reportedListeners = listeners
    this.send({ t: "listeners", listeners }, () => {
      this.#reporting = false
      this.#reportListeners()
      this.closeIfIdle()
    })
  }

  #deliver(output: Extract<ChannelOutput, { kind: "event" }>): void {
    const { listeners, to, without } = output
    const frame = new Frame(output.frame)
    if (to === null) {
      for (const [id, { subscriber }] of this.#members) {
        if (without?.includes(id) !== true) subscriber.sink.push(frame)
      }
    } else {
      const ends = endsVoice(frame.text)
      for (const id of to) {
        const member = this.#members.get(id)
        // Who waits for a place in the call gets an error instead.
        if (ends && member?.membership?.voice.end() !== true) continue
        member?.subscriber.sink.push(frame)
      }
    }
    if (listeners) for (const listener of this.#listeners.values()) listener.sink.push(frame)
  }

  #enter(output: Extract<ChannelOutput, { kind: "enter" }>): void {
    const frame = new Frame(output.frame)
    for (const { connection, joinedAt, player } of output.players) {
      this.#enterPlayer(player, connection, joinedAt, frame)
    }
    for (const connection of output.listeners) {
      const subscriber = this.#joining.get(connection)
      if (subscriber?.channels.get(this.name)?.link !== this) continue
      this.#joining.delete(connection)
      this.#joiningListeners -= 1
      this.#listeners.set(connection, subscriber)
      subscriber.sink.push(frame)
    }
    this.#reportListeners()
  }

  /** Adds a player: from here on its connection receives the channel's events. */
  #enterPlayer(playerId: string, connectionId: string, joinedAt: number, frame: Frame): void {
    const subscriber = this.#joining.get(connectionId) ?? this.#memberOn(playerId, connectionId)
    if (subscriber?.player === undefined) {
      return this.send({ t: "disconnect", playerId, connectionId }, () => this.closeIfIdle())
    }
    const membership = subscriber.channels.get(this.name)
    if (membership?.link !== this) {
      const reason = "left"
      return this.send({ t: "leave", playerId, connectionId, reason }, () => this.closeIfIdle())
    }
    this.#members.set(playerId, { subscriber, player: subscriber.player, joinedAt, membership })
    subscriber.sink.push(frame)
  }

  /**
   * Returns the member's connection, if it is this one: a join that was sent twice has two replies.
   */
  #memberOn(playerId: string, connectionId: string): ChannelSubscriber | undefined {
    const subscriber = this.#members.get(playerId)?.subscriber
    return subscriber?.connectionId === connectionId ? subscriber : undefined
  }

  #exit(playerId: string, connectionId: string): void {
    const member = this.#members.get(playerId)
    if (member?.subscriber.connectionId !== connectionId) return
    this.#members.delete(playerId)
    this.#removeMembership(member.subscriber, member.membership)
  }

  #exitListeners(): void {
    const listeners = Array.from(this.#listeners.values())
    this.#listeners.clear()
    for (const listener of listeners) {
      this.#removeMembership(listener, listener.channels.get(this.name))
    }
    this.#reportListeners()
  }

  #removeMembership(
    { channels }: ChannelSubscriber,
    membership?: ChannelMembership<ChannelHandle>
  ): void {
    if (membership?.link === this) channels.remove(this.name, membership)
  }

  #refuse(seq: number, playerId: string | null, error: CodedError): void {
    if (seq > 0) this.reply(seq, { ok: false, error })
    else if (playerId !== null) this.#members.get(playerId)?.subscriber.warn(error)
  }

  /**
   * Closes the channel for its members. They know if it was closed; this call informs them if it
   * was lost.
   */
  #close(error: CodedError, wasLost: boolean): void {
    const members = Array.from(this.#members.values())
    this.#members.clear()
    const closed = Frame.of({ t: "channel_closed", channel: this.name, reason: "lost" })
    for (const { membership, subscriber } of members) {
      if (wasLost) subscriber.sink.push(closed)
      this.#removeMembership(subscriber, membership)
    }
    if (wasLost) for (const listener of this.#listeners.values()) listener.sink.push(closed)
    this.#exitListeners()
    this.end(error)
  }
}

/** The links to channels by name, and the calls to a channel for requests that need no link. */
export const makeChannelLinks = Effect.fnUntraced(function* ({ context }: NodeContexts) {
  const local = yield* LocalChannels
  const client = yield* Channel.client
  const channels = new LinkRegistry<ChannelLink>({
    idOf: channelId,
    make: (target) => new ChannelLink({ ...target, client, local, context }),
    receivers: local.receivers
  })
  const channel = (environmentId: string, name: string) => client(channelId(environmentId, name))
  return { channels, channel }
})
