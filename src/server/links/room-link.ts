/**
 * The line to one room for all of a node's players in it: one stream in, one batch out a turn. The
 * link knows which connection hears for which player; the room says when that starts and stops.
 */
import { Effect, type Fiber, Stream } from "effect"
import { type CodedError, RoomNotFound, Unavailable } from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/rooms"
import type { LocalRooms } from "#entities/room/entity"
import type { RemoteRoomOutputs, RemoteRooms } from "#entities/room/remote"
import type { RoomInput, RoomOutput } from "#entities/room/messages"
import type { Room } from "#entities/room/protocol"
import type { FlushScheduler } from "#server/platform/flush"
import { Frame } from "#server/platform/outbox"
import { type ReplyCallback, EntityLink } from "./entity-link.ts"
import type { RoomHandle, Subscriber } from "./subscriber.ts"

export type RoomClient = Effect.Success<typeof Room.client>
type Command = RoomInput["command"]

/** What every link needs of its node. */
export interface NodeContext {
  readonly node: string
  readonly turn: FlushScheduler
  /** Numbers the attachments of this node's links. */
  readonly nextWatch: () => number
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
}

export class RoomLink implements RoomHandle {
  readonly roomId: string
  readonly environmentId: string
  readonly #link: EntityLink<Command, RoomOutput, JsonObject>
  readonly #members = new Map<string, Subscriber>()
  /** The number of the attachment. */
  #watch = 0
  /** Where the line to the room's node ends, once the room has been heard over it. */
  #owner: string | undefined
  readonly #findConnection: (connectionId: string) => Subscriber | undefined
  readonly #ended: (link: RoomLink) => void

  constructor(options: {
    readonly roomId: string
    readonly environmentId: string
    readonly client: RoomClient
    readonly local: LocalRooms["Service"]
    readonly lines: RemoteRooms
    readonly surroundings: NodeContext
    readonly findConnection: (connectionId: string) => Subscriber | undefined
    readonly ended: (link: RoomLink) => void
  }) {
    const { client, environmentId, lines, local, roomId, surroundings } = options
    const { node } = surroundings
    this.roomId = roomId
    this.environmentId = environmentId
    this.#findConnection = options.findConnection
    this.#ended = options.ended
    this.#link = new EntityLink({
      ...surroundings,
      target: {
        local: () => {
          const actor = local.actors.get(roomId)
          return actor === undefined || actor.fenced ? this.#overLine(lines) : actor
        },
        input: (inputs, call) =>
          client(roomId)
            .Input({ node, watch: this.#watch, call, inputs })
            .pipe(Effect.mapError(() => new Unavailable())),
        watch: (epoch) => {
          this.#watch = surroundings.nextWatch()
          this.#owner = undefined
          const present = Array.from(this.#members.values(), (member) => ({
            playerId: member.playerId,
            displayName: member.displayName,
            relayOnly: member.relayOnly,
            connectionId: member.connectionId
          }))
          return client(roomId)
            .Watch({
              environmentId,
              node,
              address: lines.address,
              watch: this.#watch,
              epoch,
              present
            })
            .pipe(Stream.mapError((error) => coded(error)))
        },
        receive: (items) => this.#receive(items),
        repeatable: (command) => command.t !== "send" && command.t !== "signal",
        lost: () => this.#lost()
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

  receive(epoch: number, items: ReadonlyArray<RoomOutput>): void {
    this.#link.receive(epoch, items)
  }

  /** What a room of another node tells, over the line from there. */
  receiveFar({ epoch, from, items, watch }: RemoteRoomOutputs): void {
    if (watch !== this.#watch) return
    if (items.length === 0) this.#owner = from
    this.#link.receive(epoch, items)
  }

  send(command: Command, answered?: ReplyCallback<JsonObject>): void {
    this.#link.send(command, answered)
  }

  request(command: Command): Effect.Effect<JsonObject, CodedError> {
    return this.#link.request(command)
  }

  /** A connection is gone: its seat waits for the player's return. */
  disconnect(subscriber: Subscriber, replaced: boolean): void {
    const { connectionId, playerId } = subscriber
    if (this.#members.get(playerId) === subscriber) this.#members.delete(playerId)
    this.#link.send({ t: "disconnect", playerId, connectionId, replaced }, () => this.closeIfIdle())
  }

  /** Ends the link when nobody is left to hear or be heard. */
  closeIfIdle(): void {
    if (this.#members.size > 0 || !this.#link.idle || this.#link.ended) return
    this.#link.end()
    this.#ended(this)
  }

  #overLine(lines: RemoteRooms) {
    const owner = this.#owner
    const watch = this.#watch
    if (owner === undefined) return undefined
    const lost = (): void => {
      if (watch === this.#watch) this.#link.broken()
    }
    return {
      submit: (node: string, inputs: ReadonlyArray<RoomInput>): void =>
        lines.sendInputs(owner, { room: this.roomId, node, watch, inputs }, lost)
    }
  }

  #receive(items: ReadonlyArray<RoomOutput>): void {
    for (const item of items) {
      switch (item.kind) {
        case "event":
          this.#event(item.to, item.except, item.frame)
          break
        case "enter":
          this.#enter(item.player, item.connection, item.frame)
          break
        case "exit":
          this.#exit(item.player)
          break
        case "reply":
          this.#link.answer(item.seq, { ok: true, data: item.data })
          break
        case "refuse":
          this.#refuse(item.seq, item.player, {
            _tag: item.error.code,
            message: item.error.message,
            ...(item.error.details === undefined ? {} : { details: item.error.details })
          })
          break
        case "end":
          this.#lost(false)
          return
      }
    }
    this.closeIfIdle()
  }

  #event(to: ReadonlyArray<string> | null, except: string | null, text: string): void {
    const frame = new Frame(text)
    if (to !== null) {
      for (const id of to) this.#members.get(id)?.push(frame)
      return
    }
    for (const [id, member] of this.#members) {
      if (id !== except) member.push(frame)
    }
  }

  /** A player comes in: from here on its connection hears the room. */
  #enter(playerId: string, connectionId: string, text: string): void {
    const subscriber = this.#findConnection(connectionId)
    if (subscriber === undefined) {
      this.#link.send({ t: "disconnect", playerId, connectionId, replaced: false }, () =>
        this.closeIfIdle()
      )
      return
    }
    if (!subscriber.expects(this.roomId)) {
      this.#link.send({ t: "leave", playerId, connectionId, reason: "left" }, () =>
        this.closeIfIdle()
      )
      return
    }
    this.#members.set(playerId, subscriber)
    subscriber.seated(this)
    subscriber.push(new Frame(text))
  }

  #exit(playerId: string): void {
    const subscriber = this.#members.get(playerId)
    this.#members.delete(playerId)
    subscriber?.unseated(this.roomId)
    this.closeIfIdle()
  }

  #refuse(seq: number, playerId: string, error: CodedError): void {
    if (seq > 0) this.#link.answer(seq, { ok: false, error })
    else this.#members.get(playerId)?.warn(error)
  }

  /** The room is no more: closed, as its members have been told, or lost, as they are told now. */
  #lost(tell = true): void {
    const members = Array.from(this.#members.values())
    this.#members.clear()
    const closed = Frame.of({ t: "room_closed", roomId: this.roomId, reason: "lost" })
    for (const member of members) {
      if (tell) member.push(closed)
      member.unseated(this.roomId)
    }
    this.#link.end(new RoomNotFound())
    this.#ended(this)
  }
}

const coded = (error: CodedError): CodedError =>
  error._tag === "room_not_found" || error._tag === "room_missing" ? error : new Unavailable()
