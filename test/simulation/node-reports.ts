/** The reports of simulated nodes about themselves: which serve, and whose players wait for admission. */
import { DateTime, Effect, Layer, Schedule } from "effect"
import { liveLimits } from "#rpc/live"
import { type NodeReport, NodeRepository } from "#sql/live/nodes"
import { ThisNode } from "#entities/local-actors"
import { WaitingPlayers } from "#server/cluster/waiting-players"
import type { Database } from "./database.ts"
import type { Process } from "./simulator.ts"

/** The table of reports, behind the database of the simulation. */
export class NodeTable {
  readonly #database: Database
  readonly #reports = new Map<string, NodeReport>()

  constructor(database: Database) {
    this.#database = database
  }

  /** The repository as a process sees it. */
  repositoryOf(process: Process): NodeRepository["Service"] {
    const statement = <A>(run: () => A) => this.#database.read(process, run)
    const since = (time: DateTime.Utc) =>
      Array.from(this.#reports.values()).filter(({ reportedAt }) =>
        DateTime.isGreaterThan(reportedAt, time)
      )
    return NodeRepository.of({
      write: (report) => statement(() => void this.#reports.set(report.node, report)),
      read: (time) => statement(() => since(time)),
      addressOf: () => Effect.succeed(null),
      sweep: () => Effect.void
    })
  }
}

const reportOf = (waiting: ReadonlyArray<string>): NodeReport["document"] => ({
  address: null,
  release: "",
  startedAt: 0,
  load: 0,
  memoryBytes: 0,
  connections: 0,
  rooms: 0,
  players: 0,
  channels: 0,
  calls: 0,
  draining: false,
  waiting
})

/** Reports this node while it serves. */
export const SimulatedReports = Layer.effectDiscard(
  Effect.gen(function* () {
    const repository = yield* NodeRepository
    const waiting = yield* WaitingPlayers
    const { id: node } = yield* ThisNode
    const write = Effect.flatMap(DateTime.now, (reportedAt) =>
      repository.write({ node, reportedAt, document: reportOf(waiting.environments) })
    )
    yield* Effect.exit(write).pipe(
      Effect.repeat(Schedule.spaced(liveLimits.reportMillis)),
      Effect.forkScoped
    )
    waiting.serve()
  })
)
