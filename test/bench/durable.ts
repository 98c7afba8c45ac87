/**
 * Benchmark of durable rooms: how long the reply to a confirmed change of state takes in a mode with
 * `durable` and in one without, in turns, over the same sockets. See README.md.
 *
 *   node test/bench/durable.ts --rooms 100 --rate 5 --rounds 3 --seconds 10
 */
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { type Client, createClient, memoryStorage, type Room } from "#client/client"
import { metricOf } from "../support/metrics.ts"
import { pickCores } from "./machine/cores.ts"
import { median } from "./many/figures.ts"
import { formatTable, print } from "./many/report.ts"
import { startService } from "./many/service.ts"

const { values } = parseArgs({
  options: {
    rooms: { type: "string", default: "100" },
    rate: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "10" }
  }
})
const roomCount = Number(values.rooms)
const changeMillis = 1000 / Number(values.rate)
const windowMillis = Number(values.seconds) * 1000
const written = "svc_snapshots_written_total"

const config = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: { modes: [{ key: "plain" }, { key: "durable", durable: true }] }
}

interface Figures {
  readonly p50: number
  readonly p99: number
  readonly perSecond: number
  /** CPU of the service per change, microseconds. */
  readonly cpu: number
  readonly writesPerSecond: number
}

const server = await startService(pickCores().server, config)
const { key, url } = server.target

/** Changes the state of each room at the rate, and measures the replies. */
async function measure(rooms: ReadonlyArray<Room>): Promise<Figures> {
  const delays: Array<number> = []
  const writes = async () => metricOf(await (await fetch(`${url}/metrics`)).text(), written)
  const [cpuBefore, writesBefore] = [await server.cpuMicros(), await writes()]
  const until = performance.now() + windowMillis
  const play = async (room: Room, index: number): Promise<void> => {
    await wait((index / rooms.length) * changeMillis)
    for (let round = 0; performance.now() < until; round++) {
      const sentAt = performance.now()
      await room.confirmed.setState({ round, note: "x".repeat(200) })
      const took = performance.now() - sentAt
      delays.push(took)
      await wait(Math.max(0, changeMillis - took))
    }
  }
  await Promise.all(rooms.map(play))
  const sorted = delays.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0
  return {
    p50: at(0.5),
    p99: at(0.99),
    perSecond: (delays.length / windowMillis) * 1000,
    cpu: ((await server.cpuMicros()) - cpuBefore) / delays.length,
    writesPerSecond: (((await writes()) - writesBefore) / windowMillis) * 1000
  }
}

const openRooms = (mode: string, clients: ReadonlyArray<Client>): Promise<ReadonlyArray<Room>> =>
  Promise.all(clients.map((client) => client.rooms.create({ mode })))

async function newClient(): Promise<Client> {
  const client = createClient({ baseUrl: url, key: key ?? "", storage: memoryStorage() })
  await client.sessions.ensure()
  return client
}

try {
  const clients = await Promise.all(Array.from({ length: roomCount }, newClient))
  const modes = ["plain", "durable"]
  const figures = new Map<string, Array<Figures>>(modes.map((mode) => [mode, []]))
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const mode of modes) {
      const rooms = await openRooms(mode, clients)
      figures.get(mode)?.push(await measure(rooms))
      await Promise.all(rooms.map((room) => room.leave()))
    }
  }
  const row = (mode: string): ReadonlyArray<string> => {
    const all = figures.get(mode) ?? []
    const middle = (figure: (each: Figures) => number) => median(all.map(figure)).toFixed(2)
    return [
      mode,
      middle(({ p50 }) => p50),
      middle(({ p99 }) => p99),
      middle(({ perSecond }) => perSecond),
      middle(({ cpu }) => cpu),
      middle(({ writesPerSecond }) => writesPerSecond)
    ]
  }
  const header = ["mode", "p50 ms", "p99 ms", "changes/s", "CPU us/change", "snapshots/s"]
  const title = `Confirmed changes, ${roomCount} rooms at ${values.rate}/s each`
  print(formatTable(title, header, modes.map(row)))
  for (const client of clients) client.close()
} finally {
  await server.stop()
}
