/**
 * The notifications of Postgres in a simulated cluster: each node that listens receives a change with its
 * commit. A node that is cut off from the database loses them, and takes everything as changed when it
 * listens again.
 */
import { Effect } from "effect"
import { ClusterError } from "effect/cluster"
import type { Change, Invalidation } from "#server/platform/invalidation"
import type { Database } from "./database.ts"
import type { Process } from "./simulator.ts"

type Listener = (change: Change) => Effect.Effect<void>

const retryMillis = 500

const everything: Change = { kind: "everything", id: "" }

export class Invalidations {
  readonly #database: Database
  readonly #listeners = new Map<Listener, Process>()
  /** Nodes that try to listen again. */
  readonly #disconnected = new Set<Process>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Ends every listening session, as a crash of the server does. */
  crash(): void {
    for (const process of new Set(this.#listeners.values())) this.#lose(process)
  }

  /** Delivers a change to all who listen, at its commit. */
  announce(change: Change): void {
    for (const process of new Set(this.#listeners.values())) {
      if (!this.#database.isReachableFor(process)) this.#lose(process)
      if (!this.#disconnected.has(process)) this.#deliver(process, change)
    }
  }

  /** The invalidations as a node receives them. */
  invalidationOf(process: Process): Invalidation["Service"] {
    const unreachable = () =>
      new ClusterError.PersistenceError({ cause: new Error("Postgres cannot be reached") })
    return {
      publish: (change) =>
        Effect.orDie(this.#database.statement(process, () => this.announce(change), unreachable)),
      subscribe: (listener) => Effect.sync(() => void this.#listeners.set(listener, process)),
      awaitAcknowledgements: Effect.void
    }
  }

  #deliver(process: Process, change: Change): void {
    for (const [listener, owner] of this.#listeners) {
      if (owner !== process) continue
      if (process.state === "dead") this.#listeners.delete(listener)
      else process.enqueue(() => void process.run(listener(change)))
    }
  }

  #lose(process: Process): void {
    if (this.#disconnected.has(process)) return
    this.#disconnected.add(process)
    const listenAgain = (): void => {
      if (process.state === "dead") return
      if (process.state === "frozen" || !this.#database.isReachableFor(process)) {
        return void process.simulator.after(retryMillis, listenAgain)
      }
      this.#disconnected.delete(process)
      this.#deliver(process, everything)
    }
    process.simulator.after(retryMillis, listenAgain)
  }
}
