/**
 * What slow clients cost: the memory of the service above the same connections at rest, and the latency
 * of others, at rest, beside clients who read, and beside clients who do not. See README.md.
 */
import { once } from "node:events"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { Worker } from "node:worker_threads"
import * as Schema from "effect/Schema"
import { Quantiles } from "./many/figures.ts"
import { droppedConnections, type Loop, loopOf, loopReporter, waitedMicros } from "./many/loop.ts"
import { memoryOf, settled, withReporter } from "./many/memory.ts"
import { formatTable, print, requireSockets } from "./many/report.ts"
import { call, type Service, startService } from "./many/service.ts"
import { slowReaders, unfinishedBodies, unreadExports } from "./many/slow-requests.ts"
import type { Bench, Guest, Scenario } from "./many/slow-scenario.ts"
import { slowSockets, socketsConfig } from "./many/slow-sockets.ts"
import { echo } from "./servers/echo.ts"

const { values: options } = parseArgs({
  options: {
    readers: { type: "string", default: "10000" },
    bodies: { type: "string", default: "1200" },
    exports: { type: "string", default: "64" },
    rate: { type: "string", default: "100" },
    seconds: { type: "string", default: "30" },
    only: { type: "string", multiple: true, default: [] }
  }
})

const mebibyte = 1024 * 1024
const restMs = 10_000
const sampleMs = 200
const probePlayers = 12

const Session = Schema.Struct({ accessToken: Schema.String })
const decodeSession = Schema.decodeUnknownSync(Session)

const ReplyStats = Schema.Struct({
  ...Quantiles.fields,
  failed: Schema.Int,
  unanswered: Schema.Int
})
const decodeProbed = Schema.decodeUnknownSync(
  Schema.Struct({ others: ReplyStats, bare: ReplyStats, late: Quantiles })
)

type Probed = ReturnType<typeof decodeProbed>

let addresses = 0

/** Signs in a guest whom a trusted proxy forwards from an address of its own. */
async function signIn({ target }: Service): Promise<Guest> {
  addresses += 1
  const own = {
    "x-svc-key": target.key,
    "x-forwarded-for": `192.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`
  }
  const { accessToken } = decodeSession(await call("POST", `${target.url}/v1/auth/guest`, own, {}))
  return { token: accessToken, headers: { ...own, authorization: `Bearer ${accessToken}` } }
}

/** Requests of other players at a steady rate, from a thread of their own; ends with their latencies. */
function probe({ target }: Service, others: ReadonlyArray<Guest>): () => Promise<Probed> {
  const workerData = {
    url: `${target.url}/v1/players/me`,
    bareUrl: bare.target.url,
    headers: others.map(({ headers }) => headers)
  }
  const worker = new Worker(new URL("slow-clients-probe.ts", import.meta.url), { workerData })
  return async () => {
    const reported = once(worker, "message")
    worker.postMessage("report", [])
    return decodeProbed((await reported)[0])
  }
}

/** What the service did while something went on; shares are in percent of a core. */
interface Measured extends Probed {
  readonly peak: number
  readonly loop: Loop
  readonly busy: number
  readonly waited: number
  /** Connections that the kernel dropped. */
  readonly dropped: number
}

async function measure(
  service: Service,
  others: ReadonlyArray<Guest>,
  work: () => Promise<void>
): Promise<Measured> {
  const { pid } = service
  await loopOf(pid)
  const started = performance.now()
  const before = {
    busy: await service.cpuMicros(),
    waited: await waitedMicros(pid),
    dropped: await droppedConnections()
  }
  const stop = probe(service, others)
  const stopping = new AbortController()
  const sampled = (async () => {
    let peak = 0
    while (!stopping.signal.aborted) {
      peak = Math.max(peak, (await memoryOf(pid, "now")).rss)
      await wait(sampleMs)
    }
    return peak
  })()
  await work()
  const probed = await stop()
  const share = (micros: number) => micros / 10 / (performance.now() - started)
  const busy = share((await service.cpuMicros()) - before.busy)
  const waited = share((await waitedMicros(pid)) - before.waited)
  const dropped = (await droppedConnections()) - before.dropped
  stopping.abort()
  return { ...probed, busy, waited, dropped, peak: await sampled, loop: await loopOf(pid) }
}

const header = [
  "clients",
  "MiB above rest",
  "others p50 / p99 ms",
  "failed, unanswered",
  "bare server p50 / p99 ms",
  "sent late p99 / max ms",
  "loop late p99 / max ms",
  "longest turn CPU ms",
  "GC ms, whole heap",
  "CPU",
  "waited for a core",
  "dropped connects"
]

const pair = (a: number, b: number): string => `${a.toFixed(1)} / ${b.toFixed(1)}`

const row = (name: string, rest: number, measured: Measured): ReadonlyArray<string> => {
  const { bare: beside, busy, dropped, late, loop, others, peak, waited } = measured
  return [
    name,
    ((peak - rest) / mebibyte).toFixed(0),
    pair(others.p50, others.p99),
    `${others.failed}, ${others.unanswered}`,
    pair(beside.p50, beside.p99),
    pair(late.p99, late.max),
    pair(loop.p99, loop.max),
    loop.turn.toFixed(1),
    `${loop.gcMillis.toFixed(0)}, ${loop.majors}`,
    `${busy.toFixed(0)} %`,
    `${waited.toFixed(0)} %`,
    `${dropped}`
  ]
}

/** Runs one scenario, and prints a row for its connections at rest and for each of its phases. */
async function run(bench: Bench, others: ReadonlyArray<Guest>, scenario: Scenario) {
  const { service } = bench
  const crowd = await scenario.gather(bench)
  const rows: Array<ReadonlyArray<string>> = []
  let rest = 0
  const atRest = async (): Promise<void> => {
    await settled(service)
    await memoryOf(service.pid, "gc")
    rest = (await memoryOf(service.pid, "now")).rss
  }
  await atRest()
  const title = `${scenario.name}; at rest ${(rest / mebibyte).toFixed(0)} MiB`
  rows.push(row("at rest", rest, await measure(service, others, () => wait(restMs))))
  for (const { name, run: act } of crowd.phases) {
    rows.push(row(name, rest, await measure(service, others, act)))
  }
  print(formatTable(title, header, rows))
  print(await crowd.end())
  await settled(service)
}

const readers = Number(options.readers)
const rate = Number(options.rate)
requireSockets(readers)
const scenarios = [
  unreadExports({ connections: Number(options.exports), rate }),
  ...unfinishedBodies({ connections: Number(options.bodies), rate }),
  slowReaders({ connections: readers, rate }),
  slowSockets(readers, Number(options.seconds))
].filter((_, n) => options.only.length === 0 || options.only.includes(`${n + 1}`))

const bare = await echo.start(undefined)
const service = await withReporter(
  () =>
    startService(undefined, socketsConfig, {
      SVC_THROTTLES: "on",
      SVC_TRUSTED_PROXIES: "127.0.0.1",
      SVC_GUEST_SAVE_BYTES: `${100 * mebibyte}`,
      SVC_LOG_LEVEL: "error"
    }),
  [loopReporter]
)
try {
  const bench: Bench = { service, signIn: () => signIn(service) }
  const others: Array<Guest> = []
  for (let n = 0; n < probePlayers; n++) others.push(await bench.signIn())
  for (const scenario of scenarios) await run(bench, others, scenario)
} finally {
  await service.stop()
  await bare.stop()
}
