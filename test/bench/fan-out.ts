/**
 * Fan-out benchmark: CPU of the server process per delivered message and latency, for the service
 * alone and as two runners, Colyseus, socket.io, a naive `ws` server and the floor without entities,
 * alternating in one run. See README.md.
 */
import { parseArgs } from "node:util"
import { pickCores } from "./cores.ts"
import { startGenerator } from "./load/client.ts"
import type { Load } from "./load/protocol.ts"
import { machineMicros } from "./process.ts"
import { formatTable, writeResult } from "./report.ts"
import { type LoadResult, type Plan, type Round, summarise } from "./result-file.ts"
import type { Peer } from "./servers/peer.ts"
import { peers } from "./servers/peers.ts"

const full: Plan = { rounds: 5, warmUpMs: 5_000, leadMs: 1_000, windowMs: 5_000 }
const short: Plan = { rounds: 1, warmUpMs: 1_000, leadMs: 500, windowMs: 2_000 }
const defaultLoads = ["20x8x20", "2x64x5", "20x8x60"]

function parseLoad(text: string): Load {
  const [, rooms, players, rate] = /^(\d+)x(\d+)x(\d+)$/.exec(text)?.map(Number) ?? []
  if (!rooms || !players || players < 2 || players > 64 || !rate) {
    throw new Error(`--load ${text}: want <rooms>x<players, 2 to 64>x<rate>, as 20x8x60`)
  }
  return { rooms, players, rate }
}

function parsePeers(only: ReadonlyArray<string>): ReadonlyArray<Peer> {
  const names = peers.map((peer) => peer.name)
  const unknown = only.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`--only ${unknown}: want one of ${names.join(", ")}`)
  return only.length === 0 ? peers : peers.filter((peer) => only.includes(peer.name))
}

function parseOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: "boolean", default: false },
      load: { type: "string", multiple: true, default: defaultLoads },
      only: { type: "string", multiple: true, default: [] }
    }
  })
  const complete = !values.short && values.load === defaultLoads && values.only.length === 0
  return {
    plan: values.short ? short : full,
    loads: values.load.map(parseLoad),
    chosen: parsePeers(values.only),
    complete
  }
}

const cores = pickCores()

/** CPU microseconds of the server and of the whole machine. */
interface Reading {
  readonly server: number
  readonly all: number | undefined
}

const noReading: Reading = { server: 0, all: undefined }

/** One server with its players seated; `round` measures one window. */
async function seat(peer: Peer, load: Load, stack: AsyncDisposableStack) {
  const server = await peer.start(cores.server)
  stack.defer(server.stop)
  const { target } = server
  const generator = await startGenerator({ server: peer.name, target, load, core: cores.load })
  stack.defer(generator.stop)
  const round = async (leadMs: number, windowMs: number): Promise<Round> => {
    let before = noReading
    let after = noReading
    const read = async () => ({ server: await server.cpuMicros(), all: await machineMicros() })
    const figures = await generator.run(leadMs, windowMs, {
      opened: async () => void (before = await read()),
      closed: async () => void (after = await read())
    })
    if (figures.windowDeliveries === 0) throw new Error(`${peer.name}: nothing was delivered`)
    const spent = after.server - before.server
    const cpuPerDelivery = spent / figures.windowDeliveries
    if (after.all === undefined || before.all === undefined) return { cpuPerDelivery, ...figures }
    const others = (after.all - before.all - spent) / (windowMs * 1000)
    const othersPercent = Math.max(0, others * 100 - figures.busyPercent)
    return { cpuPerDelivery, othersPercent, ...figures }
  }
  return { name: peer.name, round, rounds: new Array<Round>() }
}

/** `Array.fromAsync` runs one item at a time: no two measurements may overlap. */
async function measure(chosen: ReadonlyArray<Peer>, load: Load, plan: Plan): Promise<LoadResult> {
  await using stack = new AsyncDisposableStack()
  const seated = await Array.fromAsync(chosen, async (peer) => {
    const server = await seat(peer, load, stack)
    await server.round(0, plan.warmUpMs)
    return server
  })
  const turns = Array.from({ length: plan.rounds }, () => seated).flat()
  await Array.fromAsync(turns, async (server) => {
    server.rounds.push(await server.round(plan.leadMs, plan.windowMs))
  })
  return summarise(load, seated)
}

async function benchmark(): Promise<void> {
  const { chosen, complete, loads, plan } = parseOptions()
  const results = await Array.fromAsync(loads, async (load) => {
    const result = await measure(chosen, load, plan)
    process.stdout.write(`${formatTable(result)}\n`)
    return result
  })
  const file = await writeResult({ complete, cores, plan, results })
  process.stdout.write(`written to ${file}\n`)
  // A short run may be noisy, because its times are not published, but it must not lose a message.
  const bad = results.some(({ lost, problems }) => lost || (plan === full && problems.length > 0))
  if (bad) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
