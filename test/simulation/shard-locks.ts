/**
 * The runner list and the shard locks of the cluster, as Postgres keeps them. Locks belong to a database
 * session. A session ends with its process or after an idle timeout, and then another runner can take
 * its locks.
 */
import { Effect } from "effect"
import {
  type Runner,
  type RunnerAddress,
  RunnerStorage,
  type ShardId,
  ClusterError,
  MachineId
} from "effect/cluster"
import type { RunnerReports } from "#sql/runners"
import { formatAddress } from "#server/cluster/runner-address"
import type { Database } from "./database.ts"
import type { Process } from "./simulator.ts"

interface Session {
  readonly process: Process
  usedAt: number
  ended: boolean
}

interface Entry {
  readonly runner: Runner.Runner
  healthy: boolean
  heartbeatAt: number
}

interface Report {
  readonly process: Process
  readonly unreachable: ReadonlyArray<string>
  readonly reportedAt: number
}

const failed = (text: string) => new ClusterError.PersistenceError({ cause: new Error(text) })

/** The process has ended and its machine has closed its connections. */
const hasClosed = ({ state, vanished }: Process): boolean => state === "dead" && !vanished

export class ShardLocks {
  readonly #database: Database
  readonly #expirationMillis: number
  readonly #runners = new Map<string, Entry>()
  readonly #locks = new Map<string, Session>()
  readonly #reports = new Map<string, Report>()
  #machines = 0

  constructor(database: Database, expirationMillis: number) {
    this.#database = database
    this.#expirationMillis = expirationMillis
  }

  #alive(session: Session): boolean {
    const { process, usedAt } = session
    const idle = process.simulator.now - usedAt > this.#expirationMillis
    if (idle || hasClosed(process)) session.ended = true
    return !session.ended
  }

  #holder(shard: string): Session | undefined {
    const session = this.#locks.get(shard)
    if (session === undefined || this.#alive(session)) return session
    this.#locks.delete(shard)
    return undefined
  }

  /** Ends every session and empties unlogged tables, as a crash of the server does. */
  crash(): void {
    this.#reports.clear()
    for (const session of this.#locks.values()) session.ended = true
    this.#locks.clear()
  }

  /** The runner list as a runner sees it. */
  #listOf(process: Process) {
    const { simulator } = process
    const statement = <A>(run: () => A) =>
      this.#database.statement(process, run, () => failed("Postgres cannot be reached"))
    const listed = () =>
      Array.from(this.#runners.values())
        .filter(({ heartbeatAt }) => heartbeatAt > simulator.now - this.#expirationMillis)
        .map(({ healthy, runner }) => [runner, healthy] as const)
    return {
      register: (runner: Runner.Runner, healthy: boolean) =>
        statement(() => {
          this.#runners.set(formatAddress(runner.address), {
            runner,
            healthy,
            heartbeatAt: simulator.now
          })
          return MachineId.make(this.#machines++)
        }),
      unregister: (address: RunnerAddress.RunnerAddress) =>
        statement(() => void this.#runners.delete(formatAddress(address))),
      getRunners: Effect.suspend(() =>
        // Called so often that the result comes at once while the database is healthy.
        this.#database.weather === "fine" ? Effect.sync(listed) : statement(listed)
      ),
      setRunnerHealth: (address: RunnerAddress.RunnerAddress, healthy: boolean) =>
        statement(() => {
          const known = this.#runners.get(formatAddress(address))
          if (known !== undefined) known.healthy = healthy
        })
    }
  }

  /** Locks for a session those shards that no other session holds. */
  #take(wanted: ReadonlyArray<ShardId.ShardId>, current: Session): void {
    for (const shard of wanted) {
      const id = shard.toString()
      if (this.#holder(id) === undefined) this.#locks.set(id, current)
    }
  }

  /** The reports of runners on each other. */
  reportsOf(process: Process): RunnerReports["Service"] {
    const { simulator } = process
    const statement = <A>(run: () => A) =>
      Effect.orDie(
        this.#database.statement(process, run, () => failed("Postgres cannot be reached"))
      )
    return {
      exchange: ({ self, suspects, unreachable }) =>
        statement(() => {
          this.#reports.set(self, { process, unreachable, reportedAt: simulator.now })
          return Array.from(this.#reports, ([address, report]) => ({
            address,
            unreachable: report.unreachable,
            isPresent:
              report.reportedAt > simulator.now - this.#expirationMillis &&
              !(suspects.includes(address) && hasClosed(report.process))
          })).filter(({ address }) => address !== self)
        }),
      remove: (self) => statement(() => void this.#reports.delete(self))
    }
  }

  /** The storage of a runner, through its own database connection. */
  storageOf(process: Process): RunnerStorage.RunnerStorage["Service"] {
    const { simulator } = process
    let session: Session = { process, usedAt: simulator.now, ended: false }
    const statement = <A>(run: () => A) =>
      this.#database.statement(process, run, () => failed("Postgres cannot be reached"))
    /** Runs on the session that holds the locks; a new session replaces one that ended or failed. */
    const locked = <A>(run: (current: Session) => A) =>
      Effect.suspend(() => {
        const current = session
        const renew = Effect.sync(() => {
          current.ended = true
          if (session === current) session = { process, usedAt: simulator.now, ended: false }
        })
        return statement(() => {
          if (!this.#alive(current)) return undefined
          current.usedAt = simulator.now
          return { value: run(current) }
        }).pipe(
          Effect.flatMap((done) =>
            done === undefined
              ? Effect.fail(failed("The session has ended"))
              : Effect.succeed(done.value)
          ),
          Effect.onError(() => renew)
        )
      })
    const heldBy = (current: Session, shards: Iterable<ShardId.ShardId>) =>
      Array.from(shards).filter((shard) => this.#holder(shard.toString()) === current)

    return RunnerStorage.RunnerStorage.of({
      ...this.#listOf(process),
      acquire: (_, shards) => {
        const wanted = Array.from(shards)
        return locked((current) => {
          this.#take(wanted, current)
          return heldBy(current, wanted)
        })
      },
      refresh: (address, shards) => {
        const wanted = Array.from(shards)
        const heartbeat = (): void => {
          const known = this.#runners.get(formatAddress(address))
          if (known !== undefined) known.heartbeatAt = simulator.now
        }
        if (wanted.length === 0) return Effect.as(statement(heartbeat), [])
        return locked((current) => {
          heartbeat()
          return heldBy(current, wanted)
        })
      },
      release: (_, shard) =>
        locked((current) => {
          const id = shard.toString()
          if (this.#locks.get(id) === current) this.#locks.delete(id)
        }),
      releaseAll: () =>
        locked((current) => {
          for (const [id, holder] of this.#locks) if (holder === current) this.#locks.delete(id)
        })
    })
  }
}
