/**
 * Connections benchmark: the memory and CPU of an idle, authenticated socket, the cost of connecting,
 * and what remains when all have closed; beside a naive `ws` server, socket.io and Colyseus in
 * the same run. See README.md.
 */
import { setTimeout as wait } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import {
  connectionsHeader,
  connectionsProblems,
  connectionsRow,
  leftOf,
  maxLeft,
  type ServerFigures,
  type Step
} from "./connections-figures.ts"
import { pickCores } from "./machine/cores.ts"
import { type Command, Done } from "./many/connections-worker.ts"
import { type CrowdServer, crowdServers } from "./many/crowds.ts"
import { fitLine } from "./many/figures.ts"
import { memoryOf, settled, withReporter } from "./many/memory.ts"
import { formatTable, print, requireSockets, writeResult } from "./many/report.ts"
import { startWorker } from "./many/worker.ts"

const defaultCount = 10_000
const shortCount = 500
const minCount = 100
/** Points of the memory regression, as shares of the count. */
const steps = [0.1, 0.5, 1]
/** A whole number of the service's heartbeats. */
const idleMillis = { full: 20_000, short: 3_000 }
/** The idle time after which an entity is released, plus a margin. */
const releaseMillis = { full: 130_000, short: 0 }
const releaseStepMillis = 5_000

function parseOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: "boolean", default: false },
      count: { type: "string" },
      only: { type: "string", multiple: true, default: [] }
    }
  })
  const count = Number(values.count ?? (values.short ? shortCount : defaultCount))
  if (!Number.isInteger(count) || count < minCount) {
    throw new Error(`--count ${values.count}: want a whole number from ${minCount}`)
  }
  const names = crowdServers.map(({ name }) => name)
  const unknown = values.only.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`--only ${unknown}: want one of ${names.join(", ")}`)
  requireSockets(count)
  const isChosen = ({ name }: CrowdServer) => values.only.length === 0 || values.only.includes(name)
  return {
    count,
    length: values.short ? ("short" as const) : ("full" as const),
    chosen: crowdServers.filter(isChosen),
    complete: !values.short && values.count === undefined && values.only.length === 0
  }
}

type Options = ReturnType<typeof parseOptions>

const cores = pickCores()
const script = fileURLToPath(new URL("./many/connections-worker.ts", import.meta.url))

async function measure(server: CrowdServer, { count, length }: Options): Promise<ServerFigures> {
  await using stack = new AsyncDisposableStack()
  const running = await withReporter(() => server.start(cores.server))
  stack.defer(running.stop)
  const worker = startWorker(server.name, script, cores.load)
  stack.defer(worker.stop)
  const { cpuMicros, pid, target } = running
  const tell = (command: Command): Promise<Done> => worker.ask(command, Done)
  const remember = async () => {
    await settled(running)
    const now = await memoryOf(pid, "now")
    return { now, alive: await memoryOf(pid, "gc") }
  }

  // Another process signs the players in: doing it here would inflate the baseline memory.
  const front = await running.twin?.()
  const signInAt = front?.target ?? target
  await tell({ t: "gather", server: server.name, target, signInAt, count }).finally(front?.stop)
  const base = await remember()
  let connected = 0
  const measured = await Array.fromAsync(steps, async (part): Promise<Step> => {
    const upTo = Math.round(count * part)
    const before = await cpuMicros()
    const { busyPercent, millis } = await tell({ t: "connect", count: upTo })
    const made = upTo - connected
    connected = upTo
    const cpuPerConnect = ((await cpuMicros()) - before) / made
    const perSecond = (made / millis) * 1000
    return { count: upTo, perSecond, cpuPerConnect, busyPercent, memory: await remember() }
  })
  const idleFrom = await cpuMicros()
  await wait(idleMillis[length])
  const idlePercent = ((await cpuMicros()) - idleFrom) / idleMillis[length] / 10
  await tell({ t: "seat" })
  const seated = await remember()
  await tell({ t: "close" })
  let gone = await remember()
  const giveUp = performance.now() + releaseMillis[length]
  const isLeft = () => leftOf({ base, seated, gone }, "heapUsed") > maxLeft
  while (isLeft() && performance.now() < giveUp) {
    await wait(releaseStepMillis)
    gone = await remember()
  }
  const line = (part: "rss" | "heapUsed") =>
    fitLine(measured.map(({ count, memory }) => [count, memory.alive[part]] as const))
  const lines = { rss: line("rss"), heap: line("heapUsed") }
  return { name: server.name, count, base, steps: measured, idlePercent, seated, gone, lines }
}

async function benchmark(): Promise<void> {
  const options = parseOptions()
  const { chosen, complete, count, length } = options
  const results = await Array.fromAsync(chosen, (server) => measure(server, options))
  const title = `${count} connections`
  print(formatTable(title, connectionsHeader, results.map(connectionsRow)))
  const problems = connectionsProblems(results)
  const plan = { count, steps, idleMillis: idleMillis[length] }
  await writeResult({ name: "connections", complete, cores, plan, results, problems })
  if (length === "full" && problems.length > 0) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
