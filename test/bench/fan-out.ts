/**
 * Fan-out benchmark: how long a message takes to the other players of its room at light and medium load,
 * and how many messages one core delivers in time, beside the servers that others use. See README.md.
 */
import { parseArgs } from "node:util"
import { pickCores } from "./machine/cores.ts"
import {
  addedLatencies,
  type Capacity,
  capacityHeader,
  capacityRatios,
  capacityRow,
  deliveriesPerRound,
  latencyHeader,
  latencyRow,
  nameOf,
  type Row,
  tlsRatios,
  type Window
} from "./fan-out-figures.ts"
import { capacityOf, seat, type SeatedServer } from "./fan-out-servers.ts"
import type { Shape } from "./wire/protocol.ts"
import { formatTable, print, writeResult } from "./many/report.ts"
import { peers } from "./servers/peers.ts"

const quick = { rounds: 1, leadMs: 300, windowMs: 1500 } as const
const full = { rounds: 5, leadMs: 1000, windowMs: 4000 } as const
type Plan = typeof quick | typeof full

const cores = pickCores()
/** A single room of four at a fixed rate: what one player feels on an idle node. */
const single: Shape = { rooms: 1, players: 4 }
const singleRate = 30
/**
 * Rooms of a size: those whose latency is measured, and those whose capacity is. A socket of the service
 * may send 100 frames a second, so 20 rooms of eight would not reach its limit.
 */
interface Crowd {
  readonly latency: Shape
  readonly capacity: Shape
}
const pair: Shape = { rooms: 2, players: 64 }
const crowds: ReadonlyArray<Crowd> = [
  { latency: { rooms: 20, players: 8 }, capacity: { rooms: 40, players: 8 } },
  { latency: pair, capacity: pair }
]
/** Percent of the naive server's capacity, unless `--share` says otherwise. */
const usualShares = ["5", "25", "50", "75"]
const parts = ["latency", "capacity", "two-runners"]
const usual = ["naive", "ours", "colyseus", "socket.io", "bun", "echo"]
/** Deliveries a second at which the search for the naive server's capacity begins. */
const searchFrom = 30_000

function parseOptions() {
  const list = { type: "string", multiple: true, default: new Array<string>() } as const
  const { values } = parseArgs({
    options: {
      full: { type: "boolean", default: false },
      only: list,
      server: list,
      shape: list,
      share: list
    }
  })
  const chosen = <A>(option: string, all: ReadonlyArray<A>, name: (item: A) => string) => {
    const wanted = option === "server" ? values.server : values.shape
    const unknown = wanted.find((text) => !all.some((item) => name(item) === text))
    if (unknown !== undefined)
      throw new Error(`--${option} ${unknown}: want ${all.map(name).join(", ")}`)
    return wanted.length === 0 ? all : all.filter((item) => wanted.includes(name(item)))
  }
  const unknown = values.only.find((part) => !parts.includes(part))
  if (unknown !== undefined) throw new Error(`--only ${unknown}: want ${parts.join(", ")}`)
  const shares = (values.share.length === 0 ? usualShares : values.share).map(Number)
  if (shares.some((share) => !(share > 0))) throw new Error("--share: want percent above 0")
  const has = (part: string): boolean =>
    values.only.length === 0 ? part !== "two-runners" : values.only.includes(part)
  const byDefault = has("two-runners") ? ["naive", "ours", "ours-two"] : usual
  const chosenShapes = chosen("shape", [single, ...crowds.map((crowd) => crowd.latency)], nameOf)
  const wanted = chosen("server", peers, ({ name }) => name)
  const isMeasured = (name: string): boolean =>
    name === peers[0]?.name ||
    (values.server.length > 0
      ? wanted.some((peer) => peer.name === name)
      : byDefault.includes(name))
  return {
    plan: values.full ? full : quick,
    capacity: has("capacity"),
    latency: has("latency") || has("two-runners"),
    // The first one's capacity sets the loads.
    servers: peers.filter(({ name }) => isMeasured(name)),
    withSingle: chosenShapes.includes(single),
    crowds: crowds.filter((crowd) => chosenShapes.includes(crowd.latency)),
    shares,
    complete:
      values.full && [values.only, values.server, values.shape, values.share].flat().length === 0
  }
}

interface Load {
  readonly shape: Shape
  readonly rate: number
  readonly text: string
  readonly share?: number
}

/** Loads of a crowd, in shares of the first server's capacity. */
function loadsOf(
  crowd: Crowd,
  capacities: ReadonlyArray<Capacity>,
  shares: ReadonlyArray<number>
): ReadonlyArray<Load> {
  const shape = crowd.latency
  const found = capacities.find((capacity) => capacity.shape === crowd.capacity)
  if (found === undefined) return []
  return shares.map((share) => {
    const rate = (found.best.perSecond * share) / 100 / deliveriesPerRound(shape)
    return { shape, rate, share, text: `${nameOf(shape)} at ${share} %` }
  })
}

const singleLoad: Load = {
  shape: single,
  rate: singleRate,
  text: `${nameOf(single)} at ${singleRate}/s`
}

/** `Array.fromAsync` runs one item at a time: no two measurements may overlap. */
async function measure(servers: ReadonlyArray<SeatedServer>, load: Load, plan: Plan) {
  const { rate, shape, text, ...share } = load
  const windows = new Map(servers.map(({ name }) => [name, new Array<Window>()]))
  const turns = Array.from({ length: plan.rounds }, () => servers).flat()
  // At its fixed rate the single room sends little: a longer window makes the percentiles mean something.
  const windowMs = shape === single ? plan.windowMs * 2 : plan.windowMs
  await Array.fromAsync(turns, async (server) => {
    windows.get(server.name)?.push(await server.window(shape, rate, plan.leadMs, windowMs))
  })
  return servers.map(({ name }): Row => ({
    server: name,
    shape,
    load: text,
    rate,
    ...share,
    windows: windows.get(name) ?? []
  }))
}

/** Compiles what is hot, at a load that every server can carry. */
const warmUp = async (server: SeatedServer, shapes: ReadonlyArray<Shape>): Promise<void> => {
  await Array.fromAsync(shapes, (shape) =>
    server.window(shape, Math.min(singleRate, searchFrom / deliveriesPerRound(shape)), 0, 1000)
  )
}

async function findCapacities(
  servers: ReadonlyArray<SeatedServer>,
  shapes: ReadonlyArray<Shape>,
  start: (shape: Shape) => number
): Promise<ReadonlyArray<Capacity>> {
  const pairs = shapes.flatMap((shape) => servers.map((server) => ({ server, shape })))
  const found = await Array.fromAsync(pairs, ({ server, shape }) =>
    capacityOf(server, shape, start(shape))
  )
  return found.filter((capacity) => capacity !== undefined)
}

async function benchmark(): Promise<void> {
  const options = parseOptions()
  const { capacity, complete, latency, plan, servers } = options
  const shapes = [
    ...(options.withSingle ? [single] : []),
    ...new Set(options.crowds.flatMap((crowd) => [crowd.latency, crowd.capacity]))
  ]
  const large = options.crowds.map((crowd) => crowd.capacity)
  await using stack = new AsyncDisposableStack()
  const seated = await Array.fromAsync(servers, async (peer) => {
    const server = await seat(peer, shapes, cores, stack)
    await warmUp(server, large)
    return server
  })
  const [first, ...others] = seated
  if (first === undefined) throw new Error("no server was chosen")
  const ofFirst = await findCapacities([first], large, () => searchFrom)
  const rows = latency ? await measureAll(seated, ofFirst, options) : []
  const startOf = (shape: Shape): number =>
    ofFirst.find((found) => found.shape === shape)?.best.perSecond ?? searchFrom
  const measurable = capacity ? others.filter(({ name }) => name !== "echo") : []
  const capacities = [...ofFirst, ...(await findCapacities(measurable, large, startOf))]
  print(formatTable("Capacity", capacityHeader, capacities.map(capacityRow)))
  capacityRatios(capacities).forEach(print)
  const lost = rows.some(
    ({ server, windows }) => server === "ours" && windows.some(({ miscounted }) => miscounted > 0)
  )
  const problems = lost ? ["ours lost messages at a load that the naive server carries"] : []
  const results = { rows, capacities }
  await writeResult({ name: "fan-out", complete, cores, plan, results, problems })
  if (lost) process.exitCode = 1
}

async function measureAll(
  seated: ReadonlyArray<SeatedServer>,
  capacities: ReadonlyArray<Capacity>,
  { crowds: chosen, plan, shares, withSingle }: ReturnType<typeof parseOptions>
): Promise<ReadonlyArray<Row>> {
  const loads = [
    ...(withSingle ? [singleLoad] : []),
    ...chosen.flatMap((crowd) => loadsOf(crowd, capacities, shares))
  ]
  const rows = (await Array.fromAsync(loads, (load) => measure(seated, load, plan))).flat()
  print(formatTable("Latency", latencyHeader, rows.map(latencyRow)))
  addedLatencies(rows).forEach(print)
  tlsRatios(rows).forEach(print)
  return rows
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
