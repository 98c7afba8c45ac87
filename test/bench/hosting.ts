/**
 * Hosting benchmark: requests a second and CPU for a file of 20 KB, for 304, and for parts of a wasm file of
 * 10 MB; and memory under slow downloads. Beside it sirv on Node and nginx. See README.md.
 */
import { readFile } from "node:fs/promises"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { pickCores } from "./machine/cores.ts"
import { FileConnection, requestOf } from "./files/client.ts"
import { type FileServer, paths, startFileServers } from "./files/servers.ts"
import { median, quantilesOf } from "./many/figures.ts"
import { busyPercent } from "./many/pace.ts"
import { formatTable, print, writeResult } from "./many/report.ts"

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "2" },
    rounds: { type: "string", default: "3" },
    slow: { type: "string", default: "1000" }
  }
})

const seconds = Number(options.seconds)
const rounds = Number(options.rounds)
const slow = Number(options.slow)
const connections = 50
const partBytes = 256 * 1024
const ticksPerSecond = 100
const busyMax = 85

const kinds = ["20 KB file", "not modified", "256 KB of 10 MB"] as const
type Kind = (typeof kinds)[number]

/** The CPU microseconds and the resident bytes of a process. */
async function usageOf(pid: number) {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const ticks = Number(fields[11]) + Number(fields[12])
  return { micros: (ticks * 1_000_000) / ticksPerSecond, rss: Number(fields[21]) * 4096 }
}

async function requestFor(kind: Kind, { host, port }: FileServer) {
  if (kind === "20 KB file") return { request: requestOf(host, paths.asset), status: 200 }
  if (kind === "256 KB of 10 MB") {
    const range = { range: `bytes=1000000-${1_000_000 + partBytes - 1}` }
    return { request: requestOf(host, paths.wasm, range), status: 206 }
  }
  const connection = await FileConnection.open(port)
  const { etag } = await connection.exchange(requestOf(host, paths.asset))
  connection.close()
  return { request: requestOf(host, paths.asset, { "if-none-match": etag }), status: 304 }
}

interface Measured {
  readonly perSecond: number
  readonly cpuMicros: number
  readonly p99: number
  readonly busyPercent: number
}

async function drive(server: FileServer, kind: Kind, forSeconds: number): Promise<Measured> {
  const { request, status } = await requestFor(kind, server)
  const opened = await Promise.all(
    Array.from({ length: connections }, () => FileConnection.open(server.port))
  )
  const latencies: Array<number> = []
  const before = await usageOf(server.pid)
  const started = performance.now()
  const until = started + forSeconds * 1000
  const busy = await busyPercent(async () => {
    await Promise.all(
      opened.map(async (connection) => {
        while (performance.now() < until) {
          const sent = performance.now()
          const answer = await connection.exchange(request)
          if (answer.status !== status) throw new Error(`${server.name}: ${answer.status}`)
          latencies.push(performance.now() - sent)
        }
      })
    )
  })
  const took = (performance.now() - started) / 1000
  const after = await usageOf(server.pid)
  for (const connection of opened) connection.close()
  return {
    perSecond: latencies.length / took,
    cpuMicros: (after.micros - before.micros) / latencies.length,
    p99: quantilesOf(latencies).p99,
    busyPercent: busy
  }
}

/** Growth of the resident memory while so many clients have asked for the large file and read nothing. */
async function slowGrowth(server: FileServer): Promise<number> {
  const before = await usageOf(server.pid)
  const opened = await Promise.all(
    Array.from({ length: slow }, () => FileConnection.open(server.port))
  )
  const request = requestOf(server.host, paths.wasm)
  for (const connection of opened) connection.ignore(request)
  await wait(3000)
  const after = await usageOf(server.pid)
  for (const connection of opened) connection.close()
  await wait(500)
  return (after.rss - before.rss) / 1024 / 1024
}

const cores = pickCores()
await using stack = new AsyncDisposableStack()
const servers = await startFileServers(cores.server, stack)
const problems: Array<string> = []
const results: Record<string, Record<string, ReadonlyArray<Measured>>> = {}
for (const kind of kinds) {
  const ofKind: Record<string, Array<Measured>> = {}
  for (const server of servers) await drive(server, kind, seconds / 2)
  for (let round = 0; round < rounds; round++) {
    for (const server of servers) {
      const measured = await drive(server, kind, seconds)
      ;(ofKind[server.name] ??= []).push(measured)
    }
  }
  results[kind] = ofKind
}

const rows: Array<ReadonlyArray<string>> = []
for (const [kind, ofKind] of Object.entries(results)) {
  const ours = median((ofKind["ours"] ?? []).map(({ perSecond }) => perSecond))
  for (const [name, measured] of Object.entries(ofKind)) {
    const rate = median(measured.map(({ perSecond }) => perSecond))
    const busiest = Math.max(...measured.map((it) => it.busyPercent))
    if (busiest > busyMax)
      problems.push(`${kind}, ${name}: the clients' core was ${busiest} % busy`)
    rows.push([
      kind,
      name,
      rate.toFixed(0),
      name === "ours" ? "" : (ours / rate).toFixed(2),
      median(measured.map(({ cpuMicros }) => cpuMicros)).toFixed(0),
      median(measured.map(({ p99 }) => p99)).toFixed(1),
      busiest.toFixed(0)
    ])
  }
}
print(
  formatTable(
    "Hosted files",
    ["what", "server", "requests/s", "ours to it", "CPU us", "p99 ms", "clients busy %"],
    rows
  )
)
const growth: Record<string, number> = {}
for (const server of servers) growth[server.name] = await slowGrowth(server)
print(
  formatTable(
    `${slow} clients that asked for 10 MB and read nothing`,
    ["server", "memory MiB"],
    Object.entries(growth).map(([name, mebibytes]) => [name, mebibytes.toFixed(1)])
  )
)
if (servers.length < 3) problems.push("nginx is not installed")
const plan = { seconds, rounds, connections, slow }
await writeResult({
  name: "hosting",
  complete: seconds >= 2 && rounds >= 3,
  cores,
  plan,
  results: { ...results, growth },
  problems
})
