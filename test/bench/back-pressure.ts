/**
 * Back-pressure benchmark: the effect of one client among a hundred that stops reading or floods,
 * on members of its own room and of other rooms. Windows with and without it alternate. See
 * README.md.
 */
import { setTimeout as wait } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import {
  backPressureHeader,
  backPressureProblems,
  backPressureRow,
  type Measured,
  ratiosOf
} from "./back-pressure-figures.ts"
import { pickCores } from "./machine/cores.ts"
import { type Command, Done, type Offence, Window } from "./many/back-pressure-worker.ts"
import { memoryOf, settled, withReporter } from "./many/memory.ts"
import { formatTable, print, writeResult } from "./many/report.ts"
import { startService } from "./many/service.ts"
import { startWorker } from "./many/worker.ts"

const load = { rooms: 13, players: 8, rate: 20, bytes: 4096 }
const plans = {
  full: { rounds: 5, warmUpMillis: 5_000, windowMillis: 10_000 },
  short: { rounds: 1, warmUpMillis: 1_000, windowMillis: 2_000 }
}
const offences: ReadonlyArray<Offence> = ["none", "stops reading", "none", "floods"]
const sampleMillis = 200

const config = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: { modes: [{ key: "crowd", minPlayers: 2, maxPlayers: load.players }] }
}

const cores = pickCores()
const script = fileURLToPath(new URL("./many/back-pressure-worker.ts", import.meta.url))

/** The most memory that the process took while `work` went on. */
async function peakRss<A>(pid: number, work: Promise<A>): Promise<readonly [A, number]> {
  const state = { over: false, peak: 0 }
  const sampling = (async () => {
    while (!state.over) {
      state.peak = Math.max(state.peak, (await memoryOf(pid, "now")).rss)
      await wait(sampleMillis)
    }
  })()
  try {
    return [await work, state.peak]
  } finally {
    state.over = true
    await sampling
  }
}

async function measure({ rounds, warmUpMillis, windowMillis }: (typeof plans)["full"]) {
  await using stack = new AsyncDisposableStack()
  const server = await withReporter(() => startService(cores.server, config))
  stack.defer(server.stop)
  const worker = startWorker("ours", script, cores.load)
  stack.defer(worker.stop)
  const seat: Command = { t: "seat", target: server.target, ...load }
  await worker.ask(seat, Done)
  const window = async (offence: Offence, millis: number): Promise<Measured> => {
    await settled(server)
    const before = await memoryOf(server.pid, "gc")
    const command: Command = { t: "window", millis, offence }
    const [figures, peak] = await peakRss(server.pid, worker.ask(command, Window))
    return { ...figures, offence, rssGrowth: peak - before.rss }
  }
  for (const offence of offences) await window(offence, warmUpMillis)
  const turns = Array.from({ length: rounds }, () => offences).flat()
  return await Array.fromAsync(turns, (offence) => window(offence, windowMillis))
}

async function benchmark(): Promise<void> {
  const { values } = parseArgs({ options: { short: { type: "boolean", default: false } } })
  const plan = values.short ? plans.short : plans.full
  const windows = await measure(plan)
  const { bytes, players, rate, rooms } = load
  const title = `${rooms} rooms of ${players}, ${rate} messages of ${bytes} bytes a second each`
  const rows = Array.from(new Set(offences), (offence) => backPressureRow(offence, windows))
  print(formatTable(title, backPressureHeader, rows))
  const ratios = ratiosOf(windows)
  for (const [offence, ratio] of Object.entries(ratios)) {
    print(`p99 while one ${offence} / while none does: ${ratio.toFixed(2)}`)
  }
  const problems = backPressureProblems(windows)
  const results = { load, ratios, windows }
  const complete = !values.short
  await writeResult({ name: "back-pressure", complete, cores, plan, results, problems })
  const lost = windows.some(({ miscounted }) => miscounted > 0)
  if (lost || (complete && problems.length > 0)) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
