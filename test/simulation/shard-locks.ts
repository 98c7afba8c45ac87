/**
 * The cluster's list of runners and its shard locks, as Postgres keeps them: locks belong to a
 * session, a session ends with its process or when it has been idle for too long, and what a runner
 * held in a session that ended may be another's by then.
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
import type { Change, Invalidation } from "#server/platform/invalidation"
import type { Database } from "./database.ts"
import type { Process } from "./world.ts"

type Hearer = (change: Change) => Effect.Effect<void>

interface Session {
  readonly process: Process
  usedAt: number
  ended: boolean
}

interface Entry {
  readonly runner: Runner.Runner
  healthy: boolean
  heardAt: number
}

const failed = (text: string) => new ClusterError.PersistenceError({ cause: new Error(text) })

const key = ({ host, port }: RunnerAddress.RunnerAddress): string => `${host}:${port}`

export class ShardLocks {
  readonly #database: Database
  readonly #expirationMillis: number
  readonly #runners = new Map<string, Entry>()
  readonly #locks = new Map<string, Session>()
  readonly #hearers = new Map<Hearer, Process>()
  #machines = 0

  constructor(database: Database, expirationMillis: number) {
    this.#database = database
    this.#expirationMillis = expirationMillis
  }

  #alive(session: Session): boolean {
    const { process, usedAt } = session
    const idle = process.world.now - usedAt > this.#expirationMillis
    if (idle || process.state === "dead") session.ended = true
    return !session.ended
  }

  #holder(shard: string): Session | undefined {
    const session = this.#locks.get(shard)
    if (session === undefined || this.#alive(session)) return session
    this.#locks.delete(shard)
    return undefined
  }

  /** The server has died, and every session with it. */
  crash(): void {
    for (const session of this.#locks.values()) session.ended = true
    this.#locks.clear()
  }

  /** The list of runners, as a runner sees it. */
  #listOf(process: Process) {
    const { world } = process
    const statement = <A>(run: () => A) =>
      this.#database.statement(process, run, () => failed("Postgres cannot be reached"))
    const listed = () =>
      Array.from(this.#runners.values())
        .filter(({ heardAt }) => heardAt > world.now - this.#expirationMillis)
        .map(({ healthy, runner }) => [runner, healthy] as const)
    return {
      register: (runner: Runner.Runner, healthy: boolean) =>
        statement(() => {
          this.#runners.set(key(runner.address), { runner, healthy, heardAt: world.now })
          return MachineId.make(this.#machines++)
        }),
      unregister: (address: RunnerAddress.RunnerAddress) =>
        statement(() => void this.#runners.delete(key(address))),
      getRunners: Effect.suspend(() =>
        // Asked for so often that a good day's answer comes at once.
        this.#database.weather === "fine" ? Effect.sync(listed) : statement(listed)
      ),
      setRunnerHealth: (address: RunnerAddress.RunnerAddress, healthy: boolean) =>
        statement(() => {
          const known = this.#runners.get(key(address))
          if (known !== undefined) known.healthy = healthy
        })
    }
  }

  /** Locks for a session what nobody has locked. */
  #take(wanted: ReadonlyArray<ShardId.ShardId>, current: Session): void {
    for (const shard of wanted) {
      const id = shard.toString()
      if (this.#holder(id) === undefined) this.#locks.set(id, current)
    }
  }

  /** How a runner hears that the list has changed. What is told while it has no session is lost. */
  newsOf(process: Process): Invalidation["Service"] {
    return {
      publish: (change) =>
        Effect.orDie(
          this.#database.statement(
            process,
            () => {
              for (const [hear, hearer] of this.#hearers) {
                if (hearer.state === "dead") this.#hearers.delete(hear)
                else hearer.enqueue(() => void hearer.run(hear(change)))
              }
            },
            () => failed("Postgres cannot be reached")
          )
        ),
      hear: (hear) => Effect.sync(() => void this.#hearers.set(hear, process)),
      heard: Effect.void
    }
  }

  /** What a runner sees of it, through its own connection to the database. */
  storageOf(process: Process): RunnerStorage.RunnerStorage["Service"] {
    const { world } = process
    let session: Session = { process, usedAt: world.now, ended: false }
    const statement = <A>(run: () => A) =>
      this.#database.statement(process, run, () => failed("Postgres cannot be reached"))
    /** On the session that holds the locks; one that has ended or fails makes way for a new one. */
    const locked = <A>(run: (current: Session) => A) =>
      Effect.suspend(() => {
        const current = session
        const renew = Effect.sync(() => {
          current.ended = true
          if (session === current) session = { process, usedAt: world.now, ended: false }
        })
        return statement(() => {
          if (!this.#alive(current)) return undefined
          current.usedAt = world.now
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
        const beat = (): void => {
          const known = this.#runners.get(key(address))
          if (known !== undefined) known.heardAt = world.now
        }
        if (wanted.length === 0) return Effect.as(statement(beat), [])
        return locked((current) => {
          beat()
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
