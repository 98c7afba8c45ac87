/** Registry of local queues, which checks each match that they make. */
import { Layer } from "effect"
import type { QueueActor } from "#entities/matchmaking-queue/actor"
import { LocalQueues } from "#entities/matchmaking-queue/entity"
import { makeLocalActors } from "#entities/local-actors"
import type { QueueOutput } from "#entities/matchmaking-queue/protocol"
import { OpeningCheck } from "../support/opening-check.ts"
import type { Process } from "./simulator.ts"

const check = (process: Process, queueId: string, actor: QueueActor): void => {
  const { simulator } = process
  const openings = new OpeningCheck()
  const makeMatch = actor.makeMatch.bind(actor)
  actor.makeMatch = (match, settings) => {
    const { maxPlayers } = settings.room
    const spare = openings.begin(match, maxPlayers, actor.waiting, simulator.now)
    if (spare > 0) simulator.fault(`${queueId} opens a room with ${spare} seats to spare`)
    makeMatch(match, settings)
  }
  const completed = actor.completed.bind(actor)
  actor.completed = (match, result) => {
    openings.end(match)
    completed(match, result)
  }
}

class CheckedActors extends Map<string, QueueActor> {
  readonly #process: Process

  constructor(process: Process) {
    super()
    this.#process = process
  }

  override set(queueId: string, actor: QueueActor): this {
    check(this.#process, queueId, actor)
    return super.set(queueId, actor)
  }
}

/** The registry of local queues, which reports rooms that the queues open in vain. */
export const checkedQueues = (process: Process) =>
  Layer.sync(LocalQueues, () =>
    makeLocalActors<QueueActor, QueueOutput>(new CheckedActors(process))
  )
