/** Faults of the cluster: runners are killed, stopped, frozen and started; the network and the database fail. */
import type { Weather } from "./database.ts"
import type { Chance } from "./random.ts"
import type { RunnerContext } from "./runner.ts"
import { Runner } from "./runner.ts"
import type { Simulator } from "./simulator.ts"

const weathers: ReadonlyArray<Weather> = ["slow", "slow", "refusing", "silent"]

/** By how much the time of day of a runner is off at most, in milliseconds. */
export const stepMillis = 3000

/** Pause between two steps of a rolling deploy. */
const rollMillis = 1500

export interface Outage {
  readonly from: number
  to: number
}

export class Cluster {
  readonly simulator: Simulator
  readonly #chance: Chance
  readonly #all: RunnerContext
  readonly #newChance: () => Chance
  runners: Array<Runner> = []
  #started = 0
  #healed = false
  /** The last time at which unsaved changes may have been lost. */
  readonly outages: Array<Outage> = []
  /** No fault has happened yet. */
  calm = true
  /** The database has lost its unlogged tables. */
  crashed = false
  /** A runner is gone or was away longer than its locks last, so it may have lost its rooms. */
  bereft = false

  constructor(simulator: Simulator, chance: Chance, newChance: () => Chance, all: RunnerContext) {
    this.simulator = simulator
    this.#chance = chance
    this.#newChance = newChance
    this.#all = all
  }

  start(host = `h${this.#started}`): void {
    this.#started += 1
    const name = `r${this.#started}`
    this.simulator.note(`${name} starts on ${host}`)
    this.runners.push(new Runner(name, host, this.simulator, this.#newChance(), this.#all))
  }

  get #living(): ReadonlyArray<Runner> {
    return this.runners.filter(({ living }) => living)
  }

  #outage(millis: number): void {
    this.outages.push({ from: this.simulator.now, to: this.simulator.now + millis })
  }

  /** Injects one fault. */
  strike(): void {
    this.calm = false
    const chance = this.#chance
    const living = this.#living
    const runner = chance.pick(living)
    const other = chance.pick(living)
    if (runner === undefined || other === undefined) return this.start()
    switch (chance.integer(0, 17)) {
      case 0:
      case 1:
        return this.#kill(runner, chance.happens(0.3))
      case 2:
        return this.#stop(runner)
      case 3:
        return this.#freeze(runner)
      case 4:
        return this.#cut(runner, other)
      case 5:
        this.simulator.note(`connections reset between ${runner.name} and ${other.name}`)
        return this.#all.network.reset(runner.process, other.process)
      case 6:
      case 7:
        return this.#turn()
      case 8:
        return this.#isolate(runner)
      case 9:
      case 10:
        return this.#crash()
      case 11:
        if (living.length < 4) this.start()
        return
      case 12:
        return this.#cutOneWay(runner, other)
      case 13:
        return this.#refuse(runner, other)
      case 14:
        return this.#roll([...living])
      case 15:
        return this.#stepClock(runner)
      default:
        return this.flap()
    }
  }

  #isFree(host: string): boolean {
    return !this.#living.some((runner) => runner.host === host)
  }

  /** Another runner takes over, often at the same address. */
  #replace({ host }: Runner): void {
    const millis = this.#chance.integer(0, 8000)
    const isSame = this.#chance.happens(0.5)
    this.simulator.after(millis, () => {
      if (this.#living.length >= 3) return
      if (isSame && this.#isFree(host)) this.start(host)
      else this.start()
    })
  }

  #kill(runner: Runner, silently: boolean): void {
    this.bereft = true
    this.simulator.note(`${runner.name} ${silently ? "vanishes" : "is killed"}`)
    this.#outage(0)
    runner.kill(silently)
    this.#replace(runner)
  }

  #stop(runner: Runner): void {
    this.bereft = true
    this.simulator.note(`${runner.name} stops`)
    runner.stop()
    this.#replace(runner)
  }

  /** A rolling deploy: each runner stops, and its successor starts at its address, one after the other. */
  #roll([runner, ...others]: ReadonlyArray<Runner>): void {
    if (runner === undefined || this.#healed) return
    this.bereft = true
    this.#outage(0)
    this.simulator.note(`${runner.name} stops for its successor`)
    runner.stop()
    const succeed = (): void => {
      if (runner.living) return void this.simulator.after(rollMillis, succeed)
      if (this.#isFree(runner.host)) this.start(runner.host)
      this.simulator.after(rollMillis, () => this.#roll(others))
    }
    succeed()
  }

  #freeze(runner: Runner): void {
    this.bereft = true
    const millis = this.#chance.happens(0.5)
      ? this.#chance.integer(100, 3000)
      : this.#chance.integer(4000, 12_000)
    this.simulator.note(`${runner.name} freezes for ${millis}`)
    this.#outage(millis)
    runner.process.freeze()
    this.simulator.after(millis, () => {
      this.simulator.note(`${runner.name} thaws`)
      runner.process.thaw()
    })
  }

  #cut(a: Runner, b: Runner): void {
    if (a === b) return
    const millis = this.#chance.integer(100, 8000)
    this.simulator.note(`${a.name} and ${b.name} are cut off for ${millis}`)
    this.#all.network.cut(a.process, b.process)
    this.simulator.after(millis, () => this.#all.network.heal())
  }

  #cutOneWay(from: Runner, to: Runner): void {
    if (from === to) return
    const millis = this.#chance.integer(100, 8000)
    this.simulator.note(`${to.name} is cut off from ${from.name} one way for ${millis}`)
    this.#all.network.cutOneWay(from.process, to.process)
    this.simulator.after(millis, () => this.#all.network.heal())
  }

  /** One runner accepts no connections of another. */
  #refuse(from: Runner, to: Runner): void {
    if (from === to) return
    const millis = this.#chance.integer(100, 8000)
    this.simulator.note(`${to.name} refuses ${from.name} for ${millis}`)
    this.#all.network.refuse(from.process, to.process)
    this.simulator.after(millis, () => this.#all.network.heal())
  }

  /** The connections between runners break again and again; each time, replies are lost. */
  flap(): void {
    this.calm = false
    this.simulator.note("connections between runners are unstable")
    const resets = this.#chance.integer(5, 30)
    for (let i = 0; i < resets; i++) {
      this.simulator.after(this.#chance.integer(0, 2000), () => {
        const runner = this.#chance.pick(this.#living)
        const other = this.#chance.pick(this.#living)
        if (runner === undefined || other === undefined || runner === other) return
        this.simulator.note(`connections reset between ${runner.name} and ${other.name}`)
        this.#all.network.reset(runner.process, other.process)
      })
    }
  }

  /** One runner loses its database while its rooms are at work. */
  isolateOne(): void {
    this.calm = false
    const runner = this.#chance.pick(this.#living)
    if (runner !== undefined) this.#isolate(runner)
  }

  /** The runner loses its database and so its locks; no other runner notices. */
  #isolate(runner: Runner): void {
    this.bereft = true
    const millis = this.#chance.integer(3000, 10_000)
    this.simulator.note(`${runner.name} loses the database for ${millis}`)
    this.#outage(millis)
    this.#all.database.isolate(runner.process)
    this.simulator.after(millis, () => this.#all.database.rejoin(runner.process))
  }

  /**
   * The time of day of a runner is set forward or back, until everything heals. A runner whose clock is set
   * forward cannot tell that from a pause, and so gives up its locks.
   */
  #stepClock({ name, process }: Runner): void {
    this.bereft = true
    process.clockOffset = this.#chance.integer(-stepMillis, stepMillis)
    this.simulator.note(`the clock of ${name} is off by ${process.clockOffset}`)
  }

  /** Postgres crashes and loses its unlogged tables. */
  #crash(): void {
    const millis = this.#chance.integer(50, 3000)
    this.simulator.note(`the database crashes and is back after ${millis}`)
    this.#outage(millis)
    this.crashed = true
    this.#all.locks.crash()
    this.#all.invalidations.crash()
    this.#all.database.crash(millis)
  }

  #turn(): void {
    const weather = this.#chance.pick(weathers) ?? "slow"
    const millis = this.#chance.integer(200, 6000)
    this.simulator.note(`the database is ${weather} for ${millis}`)
    this.#outage(millis)
    this.#all.database.turn(weather)
    this.simulator.after(millis, () => this.#all.database.turn("fine"))
  }

  /** Heals all faults. */
  heal(): void {
    this.simulator.note("everything heals")
    this.#healed = true
    for (const { process } of this.runners) {
      process.thaw()
      process.clockOffset = 0
      this.#all.database.rejoin(process)
    }
    this.#all.network.heal()
    this.#all.database.turn("fine")
    while (this.#living.filter(({ open }) => open).length + this.#starting < 2) this.start()
  }

  get #starting(): number {
    return this.#living.filter(({ services }) => services === undefined).length
  }
}
