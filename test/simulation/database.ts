/**
 * The database of a simulated cluster: real Postgres under the real repository, behind a fault layer
 * that says when a statement is carried out, when its answer comes, and whether it comes at all. A
 * statement that is carried out at a virtual time is awaited at a later one, so that the run is the
 * same however fast Postgres is.
 */
import { Effect, type Exit } from "effect"
import { SqlError } from "effect/sql"
import { ChannelRepository } from "#sql/channels"
import { RoomRepository } from "#sql/rooms"
import type { Chance } from "./random.ts"
import type { Process, World } from "./world.ts"

type Rows = RoomRepository["Service"]

/** How the database is at the moment. */
export type Weather = "fine" | "slow" | "refusing" | "silent"

/** Real statements, one after the other. */
export interface RealDatabase {
  readonly rows: Rows
  readonly channelRows: ChannelRepository["Service"]
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<Exit.Exit<A, E>>
  /** Forgets all rooms and channels and begins the epochs anew. */
  readonly clear: () => Promise<void>
  /** Forgets what a crash of Postgres takes away. */
  readonly crash: () => Promise<void>
  readonly roomIds: () => Promise<ReadonlyArray<string>>
  readonly channelNames: () => Promise<ReadonlyArray<string>>
}

const statementMillis = 5000

const unreachable = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: undefined, message: "Postgres cannot be reached" })
})

/** What becomes of a statement. */
interface Fate {
  /** Milliseconds until it is carried out; never when undefined. */
  readonly carriedOut: number | undefined
  /** Milliseconds from then until the answer; never when undefined. */
  readonly answer: number | undefined
  /** The answer says that the connection is gone. */
  readonly lost: boolean
}

export class Database {
  readonly #real: RealDatabase
  readonly #world: World
  readonly #chance: Chance
  weather: Weather = "fine"
  #parked: Array<() => void> = []
  readonly #isolated = new Set<Process>()
  statements = 0

  constructor(real: RealDatabase, world: World, chance: Chance) {
    this.#real = real
    this.#world = world
    this.#chance = chance
  }

  /** The weather changes; what was stuck in silence goes on. */
  turn(weather: Weather): void {
    this.weather = weather
    if (weather === "silent") return
    const parked = this.#parked
    this.#parked = []
    for (const go of parked) go()
  }

  /** The server dies and is there again after a while, without what is in unlogged tables. */
  crash(millis: number): void {
    this.turn("refusing")
    const awaited = this.#real.crash()
    this.#world.after(millis, () => this.turn("fine"), { awaited })
  }

  /** One process cannot reach the database, while others can. */
  isolate(process: Process): void {
    this.#isolated.add(process)
  }

  /** What the process has asked meanwhile arrives now. */
  rejoin(process: Process): void {
    this.#isolated.delete(process)
    this.turn(this.weather)
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

  /** Plays a statement's fate out: `carryOut` begins it, `awaited` is what has to be there then. */
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
        this.#world.after(answer, () => resume(undefined), { process })
        return
      }
      this.#world.after(carriedOut, () => {
        if ((interrupted || process.state === "dead") && this.#chance.happens(0.5)) return
        this.statements += 1
        let exit: Exit.Exit<A, E> | undefined
        const awaited = carryOut().then((value) => {
          exit = value
        })
        this.#world.after(answer, () => resume(lost ? undefined : exit), { process, awaited })
      })
    }
    attempt()
    return () => {
      interrupted = true
    }
  }

  /** A statement of the cluster's own tables, which the world keeps itself. */
  statement<A, E>(process: Process, run: () => A, unreachableAs: () => E): Effect.Effect<A, E> {
    return Effect.callback<A, E>((resume) => {
      let interrupted = false
      const attempt = (): void => {
        const { answer, carriedOut, lost } = this.#fate(process)
        const refuse = () => resume(Effect.fail(unreachableAs()))
        if (answer === undefined) {
          this.#parked.push(attempt)
        } else if (carriedOut === undefined) {
          this.#world.after(answer, refuse, { process })
        } else {
          this.#world.after(carriedOut, () => {
            if (interrupted || process.state === "dead") return
            const value = run()
            this.#world.after(answer, lost ? refuse : () => resume(Effect.succeed(value)), {
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

  /** A statement whose failure nobody can mend (`settled`): it dies, late at the latest. */
  #settled<A>(process: Process, real: Effect.Effect<A>): Effect.Effect<A> {
    return Effect.timeoutOrElse(Effect.orDie(this.#query(process, real)), {
      duration: statementMillis,
      orElse: () => Effect.die(unreachable)
    })
  }

  /** The repository of channels as a process sees it. */
  channelRowsFor(process: Process): ChannelRepository["Service"] {
    const { channelRows: rows } = this.#real
    const settled = <A>(real: Effect.Effect<A>) => this.#settled(process, real)
    return ChannelRepository.of({
      claim: (environmentId, name) => settled(rows.claim(environmentId, name)),
      insert: (row) => settled(rows.insert(row)),
      save: (row) => settled(rows.save(row)),
      remove: (environmentId, name, epoch) => settled(rows.remove(environmentId, name, epoch)),
      exists: (environmentId, name) => settled(rows.exists(environmentId, name)),
      overdue: (before, limit) => settled(rows.overdue(before, limit))
    })
  }

  /** The repository of rooms as a process sees it. */
  rowsFor(process: Process): Rows {
    const { rows } = this.#real
    const settled = <A>(real: Effect.Effect<A>) => this.#settled(process, real)
    return RoomRepository.of({
      claim: (id) => settled(rows.claim(id)),
      nextEpoch: settled(rows.nextEpoch),
      insert: (row) => settled(rows.insert(row)),
      save: (batch) => this.#query(process, rows.save(batch)),
      unclaimed: (left) => this.#query(process, rows.unclaimed(left)),
      remove: (over) => this.#query(process, rows.remove(over)),
      seatsOf: (environmentId, playerIds) => settled(rows.seatsOf(environmentId, playerIds)),
      findByCode: (environmentId, code) => settled(rows.findByCode(environmentId, code)),
      findById: (environmentId, id) => settled(rows.findById(environmentId, id)),
      list: (environmentId, mode, limit) => settled(rows.list(environmentId, mode, limit)),
      listOpen: (environmentId, mode, limit) => settled(rows.listOpen(environmentId, mode, limit)),
      overdue: (before, limit) => settled(rows.overdue(before, limit))
    })
  }
}
