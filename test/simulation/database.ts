/**
 * The database of a simulated cluster: real Postgres under the real repositories, behind a fault layer
 * that decides when a statement runs, when its result arrives, and whether it arrives at all. A
 * statement that runs at one virtual time is awaited at a later one, so the run does not depend on the
 * speed of Postgres.
 */
import { Effect, type Exit } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import { ChannelRepository } from "#sql/channels"
import { RoomRepository } from "#sql/rooms"
import type { Chance } from "./random.ts"
import type { Process, Simulator } from "./simulator.ts"

type Rows = RoomRepository["Service"]

/** The current condition of the database. */
export type Weather = "fine" | "slow" | "refusing" | "silent"

/** Real statements, one at a time. */
export interface RealDatabase {
  readonly rows: Rows
  readonly channelRows: ChannelRepository["Service"]
  /** For services that ask it for nothing but the end of a transaction. */
  readonly sql: SqlClient.SqlClient
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<Exit.Exit<A, E>>
  /** Deletes all rooms and channels and restarts the epochs. */
  readonly clear: () => Promise<void>
  /** Deletes what a crash of Postgres loses (unlogged tables). */
  readonly crash: () => Promise<void>
  readonly roomIds: () => Promise<ReadonlyArray<string>>
  readonly channelNames: () => Promise<ReadonlyArray<string>>
}

const statementMillis = 5000

const unreachable = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: undefined, message: "Postgres cannot be reached" })
})

/** The fate of a statement. */
interface Fate {
  /** Milliseconds until it runs; undefined means never. */
  readonly carriedOut: number | undefined
  /** Milliseconds from then until the result; undefined means never. */
  readonly answer: number | undefined
  /** The result is a lost connection. */
  readonly lost: boolean
}

export class Database {
  readonly #real: RealDatabase
  readonly #simulator: Simulator
  readonly #chance: Chance
  weather: Weather = "fine"
  #parked: Array<() => void> = []
  readonly #isolated = new Set<Process>()
  statements = 0

  constructor(real: RealDatabase, simulator: Simulator, chance: Chance) {
    this.#real = real
    this.#simulator = simulator
    this.#chance = chance
  }

  /** Changes the condition; statements stuck in silence continue. */
  turn(weather: Weather): void {
    this.weather = weather
    if (weather === "silent") return
    const parked = this.#parked
    this.#parked = []
    for (const go of parked) go()
  }

  /** Crashes the server; it is back after a delay with empty unlogged tables. */
  crash(millis: number): void {
    this.turn("refusing")
    const awaited = this.#real.crash()
    this.#simulator.after(millis, () => this.turn("fine"), { awaited })
  }

  /** Cuts one process off from the database, while others reach it. */
  isolate(process: Process): void {
    this.#isolated.add(process)
  }

  /** Delivers what the process sent meanwhile. */
  rejoin(process: Process): void {
    this.#isolated.delete(process)
    this.turn(this.weather)
  }

  get sql(): SqlClient.SqlClient {
    return this.#real.sql
  }

  /** Whether a client in good condition can commit now. */
  get commits(): boolean {
    return this.weather === "fine" || this.weather === "slow"
  }

  isReachableFor(process: Process): boolean {
    return !this.#isolated.has(process) && this.weather !== "refusing"
  }

  #fate(process: Process): Fate {
    const chance = this.#chance
    switch (this.#isolated.has(process) ? "silent" : this.weather) {
      case "fine":
        return { carriedOut: chance.fraction() * 2, answer: chance.fraction() * 2, lost: false }
      case "slow":
        return {
          carriedOut: chance.integer(0, 800),
          answer: chance.integer(0, 800),
          lost: chance.happens(0.05)
        }
      case "refusing":
        return { carriedOut: undefined, answer: 1, lost: true }
      case "silent":
        return { carriedOut: undefined, answer: undefined, lost: false }
    }
  }

  /** Applies the fate of a statement: `carryOut` starts it, `awaited` is the result it waits for. */
  #play<A, E>(
    process: Process,
    carryOut: () => Promise<Exit.Exit<A, E>>,
    resume: (exit: Exit.Exit<A, E> | undefined) => void
  ): () => void {
    let interrupted = false
    const attempt = (): void => {
      const { answer, carriedOut, lost } = this.#fate(process)
      if (answer === undefined) {
        this.#parked.push(attempt)
        return
      }
      if (carriedOut === undefined) {
        this.#simulator.after(answer, () => resume(undefined), { process })
        return
      }
      this.#simulator.after(carriedOut, () => {
        if ((interrupted || process.state === "dead") && this.#chance.happens(0.5)) return
        this.statements += 1
        let exit: Exit.Exit<A, E> | undefined
        const awaited = carryOut().then((value) => {
          exit = value
        })
        this.#simulator.after(answer, () => resume(lost ? undefined : exit), { process, awaited })
      })
    }
    attempt()
    return () => {
      interrupted = true
    }
  }

  /** A statement on the cluster's own tables, which the simulation implements itself. */
  statement<A, E>(process: Process, run: () => A, unreachableAs: () => E): Effect.Effect<A, E> {
    return Effect.callback<A, E>((resume) => {
      let interrupted = false
      const attempt = (): void => {
        const { answer, carriedOut, lost } = this.#fate(process)
        const refuse = () => resume(Effect.fail(unreachableAs()))
        if (answer === undefined) {
          this.#parked.push(attempt)
        } else if (carriedOut === undefined) {
          this.#simulator.after(answer, refuse, { process })
        } else {
          this.#simulator.after(carriedOut, () => {
            if (interrupted || process.state === "dead") return
            const value = run()
            this.#simulator.after(answer, lost ? refuse : () => resume(Effect.succeed(value)), {
              process
            })
          })
        }
      }
      attempt()
      return Effect.sync(() => {
        interrupted = true
      })
    })
  }

  /** A read of rows that the simulation keeps itself; it dies at the timeout at the latest. */
  read<A>(process: Process, run: () => A): Effect.Effect<A> {
    return Effect.timeoutOrElse(Effect.orDie(this.statement(process, run, () => unreachable)), {
      duration: statementMillis,
      orElse: () => Effect.die(unreachable)
    })
  }

  #query<A, E>(
    process: Process,
    real: Effect.Effect<A, E>
  ): Effect.Effect<A, E | SqlError.SqlError> {
    return Effect.callback<A, E | SqlError.SqlError>((resume) => {
      const cancel = this.#play(
        process,
        () => this.#real.run(real),
        (exit) => resume(exit ?? Effect.fail(unreachable))
      )
      return Effect.sync(cancel)
    })
  }

  /** A statement whose failure is a defect (`orDieWithTimeout`): it dies at the timeout at the latest. */
  #settled<A>(process: Process, real: Effect.Effect<A>): Effect.Effect<A> {
    return Effect.orDie(this.#retried(process, real))
  }

  /** A statement whose caller tries again (`failOnTimeout`). It may still run after its time limit. */
  #retried<A, E>(process: Process, real: Effect.Effect<A, E>) {
    return Effect.timeoutOrElse(this.#query(process, real), {
      duration: statementMillis,
      orElse: () => Effect.fail(unreachable)
    })
  }

  /** The channel repository as a process sees it. */
  channelRowsFor(process: Process): ChannelRepository["Service"] {
    const { channelRows: rows } = this.#real
    const settled = <A>(real: Effect.Effect<A>) => this.#settled(process, real)
    return ChannelRepository.of({
      claim: (environmentId, name) => settled(rows.claim(environmentId, name)),
      insert: (row) => settled(rows.insert(row)),
      save: (row) => settled(rows.save(row)),
      remove: (environmentId, name, epoch) => settled(rows.remove(environmentId, name, epoch)),
      exists: (environmentId, name) => settled(rows.exists(environmentId, name)),
      withPlayer: (environmentId, id) => settled(rows.withPlayer(environmentId, id)),
      overdue: (before, limit, skipped) => settled(rows.overdue(before, limit, skipped))
    })
  }

  /** The room repository as a process sees it. */
  rowsFor(process: Process): Rows {
    const { rows } = this.#real
    const settled = <A>(real: Effect.Effect<A>) => this.#settled(process, real)
    return RoomRepository.of({
      claim: (id) => settled(rows.claim(id)),
      nextEpoch: settled(rows.nextEpoch),
      insert: (row) => settled(rows.insert(row)),
      save: (batch) => this.#retried(process, rows.save(batch)),
      unclaimed: (left) => this.#retried(process, rows.unclaimed(left)),
      remove: (over) => this.#retried(process, rows.remove(over)),
      seatsOf: (environmentId, playerIds) => settled(rows.seatsOf(environmentId, playerIds)),
      ofPlayer: (environmentId, id) => settled(rows.ofPlayer(environmentId, id)),
      findByCode: (...sought) => settled(rows.findByCode(...sought)),
      findById: (...sought) => settled(rows.findById(...sought)),
      list: (...listed) => settled(rows.list(...listed)),
      listOpen: (environmentId, mode, limit) => settled(rows.listOpen(environmentId, mode, limit)),
      overdue: (before, limit, skipped) => settled(rows.overdue(before, limit, skipped))
    })
  }
}
