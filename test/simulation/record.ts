/**
 * Records all that each room sends, per activation and watching node, in order. The checks compare the
 * transcripts of the players with it.
 */
import { Layer, Schema } from "effect"
import { JsonObject } from "#rpc/json"
import type { RoomActor } from "#entities/room/actor"
import { LocalRooms } from "#entities/room/entity"
import type { RoomState } from "#entities/room/model"
import type { RoomOutput } from "#entities/room/messages"
import type { Watcher } from "#entities/watchers"
import type { Process } from "./simulator.ts"

/** What one activation sent one node since the node began to watch. */
export interface RoomOutputLog {
  readonly roomId: string
  readonly epoch: number
  readonly node: string
  readonly items: Array<RoomOutput>
}

/** A seat granted by matchmaking. */
export interface MatchedSeat {
  readonly roomId: string
  readonly playerId: string
  readonly at: number
}

/** A write to the room state; `version` counts the writes of the state's history. */
export interface Write {
  readonly version: number
  readonly patch: JsonObject
}

export interface Activation {
  readonly process: Process
  readonly actor: RoomActor
  readonly wokenAt: number
  /** The state at activation; undefined for a new room. */
  readonly wokenFrom: RoomState | undefined
  /** The writes to the room state that the activation executed, in order. */
  readonly writes: Array<Write>
}

const stateForm = /^\{"t":"state",/

const decodeWrite = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ version: Schema.Int, patch: JsonObject }))
)

export class RoomRecord {
  readonly logs: Array<RoomOutputLog> = []
  readonly matched: Array<MatchedSeat> = []
  /** All activations, by room. */
  readonly activations = new Map<string, Array<Activation>>()
  readonly #stopped = new Set<RoomActor>()

  add(process: Process, actor: RoomActor): void {
    const known = this.activations.get(actor.id) ?? []
    const writes: Array<Write> = []
    const activation = {
      process,
      actor,
      wokenAt: process.simulator.now,
      wokenFrom: actor.state,
      writes
    }
    this.activations.set(actor.id, [...known, activation])
    this.#noteSeats(process, actor)
    this.#noteWrites(actor, writes)
    const attached = new WeakMap<object, Watcher<RoomOutput>>()
    const attach = actor.attach.bind(actor)
    actor.attach = (node, watcher, lastEpoch, present, link) => {
      const log: RoomOutputLog = { roomId: actor.id, epoch: actor.epoch, node, items: [] }
      this.logs.push(log)
      const send = (items: ReadonlyArray<RoomOutput>): void => {
        log.items.push(...items)
        if (items.length > 0) this.#checkOwner(process, actor)
        watcher.send(items)
      }
      attached.set(watcher, { send, end: watcher.end })
      attach(node, attached.get(watcher) ?? watcher, lastEpoch, present, link)
    }
    const detach = actor.activation.detach.bind(actor.activation)
    actor.activation.detach = (node, watcher) => detach(node, attached.get(watcher) ?? watcher)
  }

  /** The activation has ended. */
  stop(actor: RoomActor): void {
    this.#stopped.add(actor)
  }

  /** Once a room is active elsewhere, older activations must not send anything. */
  #checkOwner({ name, simulator }: Process, { epoch, id }: RoomActor): void {
    const newest = Math.max(...(this.activations.get(id) ?? []).map(({ actor }) => actor.epoch))
    if (newest > epoch) simulator.fault(`${id} of ${epoch} speaks on ${name}, ${newest} owns it`)
  }

  #noteWrites({ watchers }: RoomActor, writes: Array<Write>): void {
    const broadcast = watchers.broadcast.bind(watchers)
    watchers.broadcast = (output) => {
      if (output.kind === "event" && stateForm.test(output.frame)) {
        writes.push(decodeWrite(output.frame))
      }
      broadcast(output)
    }
  }

  #noteSeats({ simulator }: Process, actor: RoomActor): void {
    const note = (playerId: string): void => {
      this.matched.push({ roomId: actor.id, playerId, at: simulator.now })
    }
    const seat = actor.seat.bind(actor)
    actor.seat = (joiningPlayers) => {
      for (const { playerId } of joiningPlayers) note(playerId)
      return seat(joiningPlayers)
    }
    const open = actor.open.bind(actor)
    actor.open = (state) => {
      if (state.settings.matched) for (const playerId of state.members.keys()) note(playerId)
      open(state)
    }
  }

  /** Activations that may still send: in living processes, neither fenced nor ended. */
  speaking(): ReadonlyArray<Activation> {
    return Array.from(this.activations.values())
      .flat()
      .filter(
        ({ actor, process }) =>
          process.state !== "dead" && !actor.fenced && !this.#stopped.has(actor)
      )
  }
}

class RecordedActors extends Map<string, RoomActor> {
  readonly #process: Process
  readonly #record: RoomRecord

  constructor(process: Process, record: RoomRecord) {
    super()
    this.#process = process
    this.#record = record
  }

  override set(id: string, actor: RoomActor): this {
    this.#record.add(this.#process, actor)
    return super.set(id, actor)
  }

  override delete(id: string): boolean {
    const actor = this.get(id)
    if (actor !== undefined) this.#record.stop(actor)
    return super.delete(id)
  }
}

/** The registry of local rooms, which records what they send. */
export const recordedRooms = (process: Process, record: RoomRecord) =>
  Layer.sync(LocalRooms, () => LocalRooms.with(new RecordedActors(process, record)))
