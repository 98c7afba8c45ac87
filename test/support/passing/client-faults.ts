/**
 * Rounds of clients that go away in the middle of a call, while bystanders make ordinary ones. After each
 * round the service lives and answers everybody with their own response; at the end nothing is left over.
 */
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { processStats } from "../../chaos/process-stats.ts"
import { Chance } from "../../simulation/random.ts"
import { busyCode } from "./busy-function.ts"
import { type Disturbance, type Disturbed, disturbances, disturbing } from "./disturbances.ts"
import { handlesOf, leftovers } from "./leftovers.ts"
import { ordinaryCall } from "./ordinary-calls.ts"
import { type PassingWorld, startPassingWorld } from "./recorded-function.ts"
import { makeTrial, runTrial } from "./trials.ts"

export interface ClientFaultOptions {
  readonly seed: number
  readonly databaseUrl: string
  /** Rounds by what disturbs the calls meanwhile, of which the first run, and trials of a round. */
  readonly rounds: Readonly<Partial<Record<Disturbance, number>>>
  readonly roundsMax?: number
  readonly trials: number
  /** Rounds between two measurements of what is left over. */
  readonly roundsToRest: number
  /** How much live memory of a runner may grow from the first rest to the last, in bytes. */
  readonly growthMaxBytes: number
  readonly say: (line: string) => unknown
}

export interface ClientFaultOutcome {
  readonly seed: number
  /** Finished trials by disturbance. */
  readonly trials: Readonly<Record<string, number>>
  readonly findings: ReadonlyArray<string>
}

const reporter = fileURLToPath(new URL("../../chaos/process-stats-reporter.ts", import.meta.url))

const warmAtOnce = 20
/** Findings after which a run ends, since a service with one fault shows it in every round. */
const findingsMax = 20

/** Whether a process runs. */
const lives = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Log lines of faults on the way of a call. Others may complain of a busy machine. */
const fault = /Failed to (?:call a function|pass a request|serve another runner|handle a call)/
/** What a connection says whose process has been killed. */
const killed = /E(?:PIPE|CONNREFUSED|CONNRESET)|socket hang up/

class Run {
  readonly chance: Chance
  readonly findings: Array<string> = []
  readonly trials: Record<string, number> = {}
  readonly #options: ClientFaultOptions
  readonly #world: PassingWorld
  /** Log lines of each runner that have been read. */
  readonly #read = new Map<string, number>()
  #calls = 0
  #handles: ReadonlyArray<number> = []

  constructor(options: ClientFaultOptions, world: PassingWorld) {
    this.#options = options
    this.#world = world
    this.chance = new Chance(options.seed)
  }

  get isOver(): boolean {
    return this.findings.length >= findingsMax
  }

  /** The disturbances of all rounds, in the order of the seed. */
  plan(): ReadonlyArray<Disturbance> {
    const { rounds } = this.#options
    const all = Object.entries(rounds).flatMap(([name, count]) =>
      Array.from({ length: count }, () => ({ name, rank: this.chance.fraction() }))
    )
    return all
      .toSorted((a, b) => a.rank - b.rank)
      .flatMap(({ name }) => disturbances.filter((one) => one === name))
  }

  async start(): Promise<void> {
    await this.#ordinaryCalls("before the first round")
    this.#handles = await handlesOf(this.#world)
  }

  async round(disturbance: Disturbance, disturb: Disturbed): Promise<void> {
    const { players, ways } = this.#world
    const from = this.#calls
    const isCold = disturbance === "cold"
    // All of them wait for the start.
    const atOnce = isCold ? this.#options.trials : warmAtOnce
    const world = {
      ways: Object.values(ways),
      players: [...players, ...disturb.players],
      waitMillis: isCold ? 1500 : 40
    }
    const trials = Array.from({ length: this.#options.trials }, () =>
      makeTrial(this.#nextCall(), this.chance, world)
    )
    const state = { isOver: false }
    const bystanders = players.map((player, index) =>
      this.#stand(player, index, state, disturb.mayFail ? undefined : disturbance)
    )
    const waiting = [...trials]
    const client = async (): Promise<void> => {
      for (let trial = waiting.shift(); trial !== undefined; trial = waiting.shift()) {
        this.findings.push(...(await runTrial(trial)))
      }
    }
    await Promise.all([
      Effect.runPromise(disturb.meanwhile),
      Promise.all(Array.from({ length: atOnce }, client)).finally(() => {
        state.isOver = true
      }),
      ...bystanders
    ])
    this.findings.push(...(await Effect.runPromise(disturb.after)))
    const when = `${disturbance}, calls ${from} to ${this.#calls}`
    await this.#ordinaryCalls(when)
    this.#readLogs(when, disturb.mayFail)
    this.trials[disturbance] = (this.trials[disturbance] ?? 0) + trials.length
  }

  /** Waits until what the rounds have left over is gone. */
  async rest(): Promise<void> {
    this.findings.push(...(await leftovers(this.#world, this.#handles)))
  }

  async measure(): Promise<ReadonlyArray<number>> {
    const { first, second } = this.#world
    const stats = await Promise.all([first, second].map(({ pid }) => processStats(pid)))
    return stats.map(({ data }) => data)
  }

  /** Makes ordinary calls until the round is over. */
  async #stand(
    player: PassingWorld["players"][number],
    index: number,
    state: { readonly isOver: boolean },
    strict: Disturbance | undefined
  ): Promise<void> {
    const ways = Object.values(this.#world.ways)
    for (let i = index; !state.isOver && !this.isOver; i += 1) {
      const way = ways[i % ways.length]
      if (way === undefined) return
      const call = this.#nextCall()
      const fault = await ordinaryCall(way, player, call)
      if (fault !== undefined && strict !== undefined) {
        this.findings.push(`${strict}, ${call}: a bystander ${fault}`)
      }
      await pause(5)
    }
  }

  /** Makes an ordinary call of each player on each way, once the round is over. */
  async #ordinaryCalls(when: string): Promise<void> {
    const { first, players, second, ways } = this.#world
    for (const { node, output, pid } of [first, second]) {
      if (!lives(pid))
        this.findings.push(`${when}: runner ${node} has ended: ${output().slice(-3000)}`)
    }
    for (const way of Object.values(ways)) {
      for (const player of players) {
        const fault = await ordinaryCall(way, player, this.#nextCall())
        if (fault !== undefined) this.findings.push(`${when}: the next caller ${fault}`)
      }
    }
  }

  /** Finds faults that the runners have logged since the last time. */
  #readLogs(when: string, hasKilled: boolean): void {
    for (const { node, output } of [this.#world.first, this.#world.second]) {
      const lines = output()
        .split("\n")
        .filter((line) => fault.test(line))
      const fresh = lines.slice(this.#read.get(node) ?? 0)
      this.#read.set(node, lines.length)
      for (const line of fresh) {
        if (hasKilled && killed.test(line)) continue
        this.findings.push(`${when}: runner ${node} logged: ${line.slice(0, 1000)}`)
      }
    }
  }

  #nextCall(): string {
    this.#calls += 1
    return `call${this.#calls}`
  }
}

/** Runs the rounds; returns what went wrong. */
export const clientFaults = Effect.fnUntraced(function* (options: ClientFaultOptions) {
  const { databaseUrl, growthMaxBytes, roundsToRest, say, seed } = options
  const world = yield* startPassingWorld({
    databaseUrl,
    code: busyCode,
    env: { NODE_OPTIONS: `--expose-gc --import ${reporter}`, SVC_LOG_FORMAT: "json" }
  })
  const run = new Run(options, world)
  yield* Effect.promise(() => run.start())
  const sizes: Array<ReadonlyArray<number>> = []
  let round = 0
  for (const disturbance of run.plan().slice(0, options.roundsMax)) {
    const disturb = yield* disturbing(disturbance, world, { chance: run.chance, databaseUrl })
    yield* Effect.promise(() => run.round(disturbance, disturb))
    round += 1
    if (round % roundsToRest === 0 && !run.isOver) {
      yield* Effect.promise(() => run.rest())
      sizes.push(yield* Effect.promise(() => run.measure()))
      say(`${round} rounds, ${JSON.stringify(run.trials)}, ${sizes.at(-1)?.join(" and ")} bytes`)
    }
    if (run.isOver) break
  }
  const grown = (sizes.at(-1) ?? []).map((bytes, index) => bytes - (sizes[0]?.[index] ?? 0))
  for (const bytes of grown) {
    if (bytes > growthMaxBytes) run.findings.push(`the memory of a runner grew by ${bytes} bytes`)
  }
  return { seed, trials: run.trials, findings: run.findings } satisfies ClientFaultOutcome
}, Effect.scoped)

/** The run of `npm test`. */
const shortForm = {
  rounds: {
    none: 2,
    cold: 1,
    "locked table": 1,
    "frozen process": 1,
    "frozen runner": 1,
    "killed process": 1,
    "banned players": 1
  },
  trials: 25,
  roundsToRest: 8,
  growthMaxBytes: Number.POSITIVE_INFINITY
} as const

/** 10,000 trials with a process that runs, and 500 with one that is to start. */
const longForm = {
  rounds: {
    none: 140,
    cold: 10,
    "locked table": 20,
    "frozen process": 15,
    "frozen runner": 15,
    "killed process": 5,
    "banned players": 5
  },
  trials: 50,
  roundsToRest: 30,
  growthMaxBytes: 12e6
} as const

export const forms = { short: shortForm, long: longForm } as const
