/**
 * Records all that each channel sends, per activation and watching node, in order. The checks compare the
 * transcripts of the members with it.
 */
import { HashMap, Layer } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import type { ChannelActor } from "#entities/channel/actor"
import { LocalChannels } from "#entities/channel/entity"
import { makeLocalGroups } from "#entities/local-actors"
import type { ChannelOutput } from "#entities/channel/messages"
import type { Watcher } from "#entities/watchers"
import type { Process } from "./simulator.ts"

/** What one activation sent one node since the node began to watch. */
export interface ChannelOutputLog {
  readonly channelId: string
  readonly epoch: number
  readonly items: Array<ChannelOutput>
}

interface ChannelActivation {
  readonly process: Process
  readonly actor: ChannelActor
  /** When it last had members, or woke: in simulated time and by the clock of its process. */
  occupiedAt: ReadonlyArray<number>
  /** It has been seen open. */
  live: boolean
}

/** Simulated time, and the time of day of a process, which deadlines of channels follow. */
const timesOf = ({ clockOffset, simulator }: Process): ReadonlyArray<number> => [
  simulator.now,
  simulator.now + clockOffset
]

export class ChannelRecord {
  readonly logs: Array<ChannelOutputLog> = []
  readonly #activations: Array<ChannelActivation> = []
  /** The newest activation of each channel, by its id. */
  readonly #newest = new Map<string, number>()

  add(process: Process, actor: ChannelActor): void {
    const { epoch, id } = actor
    this.#activations.push({ process, actor, occupiedAt: timesOf(process), live: false })
    this.#newest.set(id, Math.max(epoch, this.#newest.get(id) ?? 0))
    const attached = new WeakMap<object, Watcher<ChannelOutput>>()
    const attach = actor.attach.bind(actor)
    actor.attach = (node, watcher, ...rest) => {
      const log: ChannelOutputLog = { channelId: id, epoch, items: [] }
      this.logs.push(log)
      const send = (items: ReadonlyArray<ChannelOutput>): void => {
        log.items.push(...items)
        if (items.length > 0) this.#checkOwner(process, actor)
        watcher.send(items)
      }
      const noted = { send, end: watcher.end }
      attached.set(watcher, noted)
      attach(node, noted, ...rest)
    }
    const { activation } = actor
    const detach = activation.detach.bind(activation)
    activation.detach = (node, watcher) => detach(node, attached.get(watcher) ?? watcher)
  }

  /** Once a channel is active elsewhere, older activations must not send anything. */
  #checkOwner({ name, simulator }: Process, { epoch, id }: ChannelActor): void {
    const newest = this.#newest.get(id) ?? epoch
    if (newest > epoch) simulator.fault(`${id} of ${epoch} speaks on ${name}, ${newest} owns it`)
  }

  /** Activations that may still send: in living processes, not fenced, of an existing channel. */
  speaking(): ReadonlyArray<ChannelActivation> {
    return this.#activations.filter(
      ({ actor, process }) => process.state !== "dead" && !actor.fenced && actor.state !== undefined
    )
  }

  /** A channel of players outlives its last member by half a minute. */
  checkEnds(): void {
    for (const activation of this.#activations) {
      const { actor, process } = activation
      const now = timesOf(process)
      if (actor.state !== undefined) {
        activation.live = true
        if (!HashMap.isEmpty(actor.state.members)) activation.occupiedAt = now
      } else if (activation.live) {
        activation.live = false
        // A clock that is set at the moment of the last leave makes one of them seem shorter.
        const empty = Math.max(...now.map((time, i) => time - (activation.occupiedAt[i] ?? 0)))
        const early = empty < channelLimits.emptySeconds * 1000
        if (early) process.simulator.fault(`${actor.id} ends while there are members, or too early`)
      }
    }
  }
}

class RecordedActors extends Map<string, ChannelActor> {
  readonly #added: (actor: ChannelActor) => void

  constructor(added: (actor: ChannelActor) => void) {
    super()
    this.#added = added
  }

  override set(id: string, actor: ChannelActor): this {
    this.#added(actor)
    return super.set(id, actor)
  }
}

/** The registry of local channels, which records what they send. */
export const recordedChannels = (process: Process, record: ChannelRecord) =>
  Layer.sync(LocalChannels, () =>
    makeLocalGroups<ChannelActor, ChannelOutput>(
      new RecordedActors((actor) => record.add(process, actor))
    )
  )
