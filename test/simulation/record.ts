/**
 * What every room of the world has told, as told: per activation and watching node, in order. It is
 * what the players' own transcripts are held against.
 */
import { Layer } from "effect"
import type { RoomActor } from "#entities/room/actor"
import { LocalRooms } from "#entities/room/entity"
import type { RoomItem } from "#entities/room/protocol"
import type { Process } from "./world.ts"

/** What one activation told one node since it began to watch. */
export interface Told {
  readonly roomId: string
  readonly epoch: number
  readonly node: string
  readonly items: Array<RoomItem>
}

export interface Activation {
  readonly process: Process
  readonly actor: RoomActor
  readonly wokenAt: number
}

export class RoomRecord {
  readonly told: Array<Told> = []
  /** Every activation there has been, by room. */
  readonly activations = new Map<string, Array<Activation>>()

  add(process: Process, actor: RoomActor): void {
    const known = this.activations.get(actor.id) ?? []
    this.activations.set(actor.id, [...known, { process, actor, wokenAt: process.world.now }])
    const attach = actor.attach.bind(actor)
    actor.attach = (node, watcher, heardEpoch, present) => {
      const told: Told = { roomId: actor.id, epoch: actor.epoch, node, items: [] }
      this.told.push(told)
      const tell = (items: ReadonlyArray<RoomItem>): void => {
        told.items.push(...items)
        watcher.tell(items)
      }
      attached.set(watcher, { tell, end: watcher.end })
      attach(node, attached.get(watcher) ?? watcher, heardEpoch, present)
    }
    const attached = new WeakMap<object, Parameters<RoomActor["attach"]>[1]>()
    const detach = actor.detach.bind(actor)
    actor.detach = (node, watcher) => detach(node, attached.get(watcher) ?? watcher)
  }

  /** Activations that may still speak: of living processes, and not fenced. */
  speaking(): ReadonlyArray<Activation> {
    return Array.from(this.activations.values())
      .flat()
      .filter(({ actor, process }) => process.state !== "dead" && !actor.fenced)
  }
}

class RecordedActors extends Map<string, RoomActor> {
  readonly #added: (actor: RoomActor) => void

  constructor(added: (actor: RoomActor) => void) {
    super()
    this.#added = added
  }

  override set(id: string, actor: RoomActor): this {
    this.#added(actor)
    return super.set(id, actor)
  }
}

/** The registry of a node's rooms, which notes what they tell. */
export const recordedRooms = (process: Process, record: RoomRecord) =>
  Layer.sync(LocalRooms, () => ({
    actors: new RecordedActors((actor) => record.add(process, actor)),
    deliver: () => undefined,
    deliverFar: () => undefined
  }))
