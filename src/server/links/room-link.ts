/**
 * Link to one room for all players of this node in it. The link knows which connection receives for
 * which player; the room says when that begins and ends.
 */
import { Effect, Stream } from "effect"
import { type CodedError, fromWire, RoomNotFound, Unavailable } from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/json"
import { LocalRooms } from "#entities/room/entity"
import { type RemoteRoomOutputs, RemoteRooms } from "#entities/room/remote"
import { receives, type RoomInput, type RoomOutput } from "#entities/room/messages"
import { Room } from "#entities/room/protocol"
import { mayJoin } from "#entities/room/seats"
import { Frame } from "#server/platform/socket-outbox"
import type { Connections } from "./connections.ts"
import { callEntityWithRetry } from "./entity-call.ts"
import { type DirectTarget, EntityLink, type LinkOptions } from "./entity-link.ts"
import { LinkRegistry } from "./link-registry.ts"
import type { NodeContexts } from "./node-contexts.ts"
import { localRoomId } from "./room-ids.ts"
import { makePeekSeat } from "./room-seats.ts"
import type { ConnectionEnd, RoomHandle, RoomSubscriber } from "./subscriber.ts"

export type RoomClient = Effect.Success<typeof Room.client>
type Command = RoomInput["command"]

const watchError = (error: CodedError): CodedError =>
  error._tag === "room_not_found" || error._tag === "room_missing" ? error : new Unavailable()

/**
 * Whether the link must report the loss of the room to a member. One that waits for the reply to its
 * `leave` has left: the room may have ended with that.
 */
export const mustReportLoss = (
  { connectionId }: Pick<RoomSubscriber, "connectionId">,
  unreplied: ReadonlyArray<Command>
): boolean =>
  !unreplied.some((command) => command.t === "leave" && command.connectionId === connectionId)

/**
 * An entry that is sent again, with what is known of the player now: the room may have received a newer
 * name meanwhile.
 */
export const renewedEntry = (
  entry: Extract<Command, { readonly t: "join" | "resume" }>,
  connection: Pick<RoomSubscriber, "blocks" | "displayName" | "relayOnly"> | undefined
): Command => {
  if (connection === undefined) return entry
  const { blocks, displayName, relayOnly } = connection
  return { ...entry, blocks, displayName, relayOnly }
}

interface RoomLinkOptions extends LinkOptions<RoomClient, LocalRooms["Service"]> {
  readonly remote: RemoteRooms
  readonly findConnection: (connectionId: string) => RoomSubscriber | undefined
}

export class RoomLink
  extends EntityLink<Command, RoomOutput, JsonObject, RoomLinkOptions>
  implements RoomHandle
{
  readonly #members = new Map<string, RoomSubscriber>()
  /** Address of the room's node, once the room has sent something over the runner link. */
  #owner: string | undefined

  get roomId(): string {
    return this.options.id
  }

  /** Closes the room: its environment is without the feature. */
  shut() {
    return this.options.client(this.roomId).Close({ reason: "feature_disabled" })
  }

  /** Receives the outputs of a room on another node over the runner link from there. */
  receiveRemote({ epoch, from, items, watch }: RemoteRoomOutputs): void {
    if (watch !== this.attachment) return
    if (items.length === 0) this.#owner = from
    this.receive(epoch, items)
  }

  /** Ends a connection's membership; the room keeps the seat for the player's return. */
  disconnect(subscriber: RoomSubscriber, end: ConnectionEnd): void {
    const { connectionId, playerId } = subscriber
    if (this.#members.get(playerId) === subscriber) this.#members.delete(playerId)
    const how = { replaced: end !== "lost", drained: end === "drained" }
    this.send({ t: "disconnect", playerId, connectionId, ...how }, () => this.closeIfIdle())
  }

  protected override directTarget(): DirectTarget<Command> | undefined {
    return super.directTarget() ?? this.#runnerLink()
  }

  protected override call(inputs: ReadonlyArray<RoomInput>, call: number) {
    return this.options
      .client(this.roomId)
      .Input({ node: this.context.node, watch: this.attachment, call, inputs })
  }

  protected override watch(epoch: number) {
    this.#owner = undefined
    const present = Array.from(this.#members.values(), (member) => ({
      playerId: member.playerId,
      displayName: member.displayName,
      relayOnly: member.relayOnly,
      blocks: member.blocks,
      connectionId: member.connectionId
    }))
    return this.options
      .client(this.roomId)
      .Watch({
        environmentId: this.environmentId,
        node: this.context.node,
        address: this.options.remote.address,
        watch: this.attachment,
        link: this.link,
        epoch,
        present
      })
      .pipe(Stream.mapError((error) => watchError(error)))
  }

  /**
   * Whether the command may be repeated. The room knows which commands it has executed. The link
   * never sends messages and signals twice.
   */
  protected override isRepeatable({ t }: Command): boolean {
    return t !== "send" && t !== "signal"
  }

  protected override renewed(command: Command): Command {
    if (command.t !== "join" && command.t !== "resume") return command
    return renewedEntry(command, this.options.findConnection(command.connectionId))
  }

  protected override isInUse(): boolean {
    return this.#members.size > 0
  }

  protected override onLost(): void {
    this.#close(true)
  }

  protected override handle(outputs: ReadonlyArray<RoomOutput>): void {
    for (const output of outputs) {
      switch (output.kind) {
        case "event":
          this.#deliver(output)
          break
        case "enter":
          this.#enter(output.player, output.connection, output.frame)
          break
        case "exit":
          this.#exit(output.player)
          break
        case "reply":
          this.reply(output.seq, { ok: true, data: output.data })
          break
        case "refuse":
          this.#refuse(output.seq, output.player, fromWire(output.error))
          break
        case "end":
          return this.#close(false)
      }
    }
    this.closeIfIdle()
  }

  /** The room's node, reached over a runner link without a call. */
  #runnerLink(): DirectTarget<Command> | undefined {
    const owner = this.#owner
    const watch = this.attachment
    if (owner === undefined) return undefined
    const onLost = (): void => {
      if (watch === this.attachment) this.detach()
    }
    return {
      submit: (node, inputs) =>
        this.options.remote.send(owner, { room: this.roomId, node, watch, inputs }, onLost)
    }
  }

  /** Sends an event to its members on this node. It encodes the frame once for all of them. */
  #deliver(event: Extract<RoomOutput, { kind: "event" }>): void {
    const frame = new Frame(event.frame)
    if (event.to !== null) {
      for (const id of event.to) this.#members.get(id)?.sink.push(frame)
      return
    }
    for (const [id, member] of this.#members) {
      if (receives(event, id)) member.sink.push(frame)
    }
  }

  /** Adds a member: from here on its connection receives the room's events. */
  #enter(playerId: string, connectionId: string, text: string): void {
    const subscriber = this.options.findConnection(connectionId)
    if (subscriber === undefined) {
      this.send({ t: "disconnect", playerId, connectionId, replaced: false }, () =>
        this.closeIfIdle()
      )
      return
    }
    if (!subscriber.expects(this.roomId)) {
      this.send({ t: "leave", playerId, connectionId, reason: "left" }, () => this.closeIfIdle())
      return
    }
    this.#members.set(playerId, subscriber)
    subscriber.seated(this)
    subscriber.sink.push(new Frame(text))
  }

  #exit(playerId: string): void {
    const subscriber = this.#members.get(playerId)
    this.#members.delete(playerId)
    subscriber?.unseated(this.roomId)
    this.closeIfIdle()
  }

  #refuse(seq: number, playerId: string, error: CodedError): void {
    if (seq > 0) this.reply(seq, { ok: false, error })
    else this.#members.get(playerId)?.warn(error)
  }

  /**
   * Closes the room for its members. They know if it was closed; this call informs them if it was
   * lost.
   */
  #close(wasLost: boolean): void {
    const members = Array.from(this.#members.values())
    this.#members.clear()
    const closed = Frame.of({ t: "room_closed", roomId: this.roomId, reason: "lost" })
    const { unreplied } = this
    for (const member of members) {
      if (wasLost && mustReportLoss(member, unreplied)) member.sink.push(closed)
      member.unseated(this.roomId)
    }
    this.end(new RoomNotFound())
  }
}

/** The links to rooms by id, and what the hub offers of rooms without a link. */
export const makeRoomLinks = Effect.fnUntraced(function* (
  { context }: NodeContexts,
  connections: Connections
) {
  const local = yield* LocalRooms
  const client = yield* Room.client
  const remote = yield* RemoteRooms
  const findConnection = (connectionId: string) => connections.get(connectionId)
  const rooms = new LinkRegistry<RoomLink>({
    idOf: (_, roomId) => roomId,
    make: (target) => new RoomLink({ ...target, client, local, remote, context, findConnection }),
    receivers: local.receivers
  })
  local.remoteOutputs.register((batch) => rooms.byId(batch.room)?.receiveRemote(batch))
  return {
    roomClient: client,
    rooms,
    /** Whether the room lives on this node, or has a link from here: then it exists. */
    knowsRoom: (environmentId: string, roomId: string): boolean => {
      const actor = local.actors.get(roomId)
      const isHere = actor?.state?.closed === null && actor.environmentId === environmentId
      return isHere || rooms.get(environmentId, roomId) !== undefined
    },
    /** Whether a room that lives on this node is there for a player; undefined if this node cannot tell. */
    isRoomHereFor: (
      environmentId: string,
      roomId: string,
      playerId: string
    ): boolean | undefined => {
      const state = local.actors.get(roomId)?.state
      if (state?.closed !== null || state.settings.environmentId !== environmentId) return undefined
      return mayJoin(state, playerId)
    },
    /** The seat that a room keeps for a player. */
    peekSeat: makePeekSeat(
      (roomId, playerId) => callEntityWithRetry(client(roomId).Peek({ playerId })),
      local.actors
    ),
    /** Generates the id of a room near this node's players. */
    newRoomId: yield* localRoomId
  }
})
