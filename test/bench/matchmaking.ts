/**
 * Matchmaking benchmark: thousands of players request rooms of four, from the service by `quickMatch`
 * and from Colyseus by `joinOrCreate`; pairs who ask shortly after each other; and the cost of a ticket in
 * the queue alone, by queue length. See README.md.
 */
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { pickCores } from "./machine/cores.ts"
import { startColyseus } from "./many/crowds.ts"
import { median } from "./many/figures.ts"
import { type Matchmaker, matchmakers, matchmakingConfig } from "./many/matchmakers.ts"
import { type Command, Done, Matched } from "./many/matchmaking-worker.ts"
import { settled } from "./many/memory.ts"
import { formatTable, print, requireSockets, writeResult } from "./many/report.ts"
import { startService } from "./many/service.ts"
import { startWorker } from "./many/worker.ts"
import {
  matchmakingHeader,
  matchmakingProblems,
  matchmakingRows,
  type Measured,
  ratiosOf,
  type Run,
  scalingHeader,
  scalingProblems,
  scalingRows
} from "./matchmaking-figures.ts"
import {
  measurePairs,
  pairModes,
  pairsHeader,
  pairsProblems,
  pairsRows
} from "./matchmaking-pairs.ts"
import { measureScaling } from "./matchmaking-scaling.ts"

const defaultCount = 5_000
const shortCount = 400
const roomSize = 4
const rates = [500, 1_000]
/** Requests in one burst: fewer than the backlog of a listening socket. */
const atATime = 256
const rounds = { full: 3, short: 1 }
/** Pairs of each kind. */
const pairCounts = { full: 250, short: 30 }

function parseOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: "boolean", default: false },
      count: { type: "string" },
      rate: { type: "string", multiple: true, default: rates.map(String) },
      only: { type: "string", multiple: true, default: [] }
    }
  })
  const count = Number(values.count ?? (values.short ? shortCount : defaultCount))
  if (!Number.isInteger(count) || count <= 0 || count % roomSize !== 0) {
    throw new Error(`--count ${values.count}: want a multiple of ${roomSize}`)
  }
  const perSecond = values.rate.map(Number)
  if (!perSecond.every((rate) => rate > 0)) {
    throw new Error(`--rate ${values.rate.join(" ")}: want players a second`)
  }
  const names = [...matchmakers.map(({ name }) => name), "scaling", "pairs"]
  const unknown = values.only.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`--only ${unknown}: want one of ${names.join(", ")}`)
  requireSockets(count)
  const isChosen = (name: string) => values.only.length === 0 || values.only.includes(name)
  return {
    count,
    length: values.short ? ("short" as const) : ("full" as const),
    offered: [null, ...perSecond],
    chosen: matchmakers.filter(({ name }) => isChosen(name)),
    scaling: isChosen("scaling"),
    pairs: isChosen("pairs"),
    complete:
      !values.short &&
      values.count === undefined &&
      values.rate.join() === rates.join() &&
      values.only.length === 0
  }
}

type Options = ReturnType<typeof parseOptions>

const cores = pickCores()
const script = fileURLToPath(new URL("./many/matchmaking-worker.ts", import.meta.url))

/** The servers, each started for the first matchmaker that asks it. */
function startServers(stack: AsyncDisposableStack) {
  const start = {
    service: () => startService(cores.server, matchmakingConfig),
    colyseus: () => startColyseus(cores.server)
  }
  const running = new Map<Matchmaker["server"], ReturnType<typeof startColyseus>>()
  return (name: Matchmaker["server"]) => {
    const known = running.get(name)
    if (known !== undefined) return known
    const starting = start[name]().then((server) => {
      stack.defer(server.stop)
      return server
    })
    running.set(name, starting)
    return starting
  }
}

/** One window: connects new players, matches all, disconnects all. */
async function run(
  matchmaker: Matchmaker,
  server: Awaited<ReturnType<typeof startColyseus>>,
  count: number,
  perSecond: number | null
): Promise<Run> {
  const worker = startWorker(matchmaker.name, script, cores.load)
  const tell = (command: Command) => worker.ask(command, Done)
  try {
    await tell({ t: "gather", matchmaker: matchmaker.name, target: server.target, count })
    await settled(server)
    const before = await server.cpuMicros()
    const command: Command = { t: "match", count, perSecond, atATime }
    const matched = await worker.ask(command, Matched)
    const cpuPerTicket = ((await server.cpuMicros()) - before) / count
    await tell({ t: "leave" })
    await settled(server)
    return { ...matched, perSecond: count / matched.seconds, cpuPerTicket }
  } finally {
    await worker.stop()
  }
}

async function measure({ chosen, count, length, offered }: Options): Promise<Array<Measured>> {
  await using stack = new AsyncDisposableStack()
  const serverOf = startServers(stack)
  // Warms each server up, and is thrown away.
  for (const matchmaker of chosen) {
    await run(matchmaker, await serverOf(matchmaker.server), shortCount, null)
  }
  /** Players per second at the highest sustained rate of each server. */
  const fastest = new Map<string, number>()
  // Awaited here, because the servers stop when this function returns.
  return await Array.fromAsync(offered, async (rate): Promise<Measured> => {
    // A rate above the capacity of a server queues up until clients time out, which measures the clients.
    const able = chosen.filter(
      ({ name }) => rate === null || (fastest.get(name) ?? Number.POSITIVE_INFINITY) > rate
    )
    const servers = able.map(({ name }) => ({ name, runs: new Array<Run>() }))
    for (let round = 0; round < rounds[length]; round++) {
      for (const [i, matchmaker] of able.entries()) {
        const server = await serverOf(matchmaker.server)
        servers[i]?.runs.push(await run(matchmaker, server, count, rate))
      }
    }
    if (rate === null) {
      for (const { name, runs } of servers) {
        fastest.set(name, median(runs.map(({ perSecond }) => perSecond)))
      }
    }
    const measured: Measured = { rate, servers, ratios: ratiosOf(servers) }
    const title =
      rate === null
        ? `${count} players as fast as they are matched, ${atATime} at a time`
        : `${count} players, ${rate} a second`
    print(formatTable(title, matchmakingHeader, matchmakingRows(measured)))
    for (const [pair, ratio] of Object.entries(measured.ratios)) {
      print(`${pair}: CPU ${ratio.cpu.toFixed(2)}, p99 ${ratio.p99.toFixed(2)}`)
    }
    for (const { name } of chosen) {
      if (able.some((one) => one.name === name)) continue
      print(`${name}: left out, it matches ${fastest.get(name)?.toFixed(0)} a second at most`)
    }
    return measured
  })
}

/** Pairs, on a service of their own. */
async function measureAllPairs(count: number) {
  const config = { ...matchmakingConfig, multiplayer: { modes: pairModes } }
  const service = await startService(cores.server, config)
  try {
    return await measurePairs(service, count)
  } finally {
    await service.stop()
  }
}

async function benchmark(): Promise<void> {
  const options = parseOptions()
  const { chosen, complete, count, length, offered } = options
  const scaling = options.scaling ? measureScaling() : []
  if (options.scaling) {
    const title = "ns per ticket by how many wait"
    print(formatTable(title, scalingHeader, scalingRows(scaling)))
  }
  const pairs = options.pairs ? await measureAllPairs(pairCounts[length]) : []
  if (options.pairs) {
    print(formatTable("Players who ask in pairs", pairsHeader, pairsRows(pairs)))
  }
  const measured = chosen.length === 0 ? [] : await measure(options)
  const problems = [
    ...scalingProblems(scaling),
    ...pairsProblems(pairs),
    ...matchmakingProblems(measured)
  ]
  const plan = { count, offered, atATime, rounds: rounds[length] }
  const results = { scaling, pairs, measured }
  await writeResult({ name: "matchmaking", complete, cores, plan, results, problems })
  if (length === "full" && problems.length > 0) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
