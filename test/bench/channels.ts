/**
 * Channels benchmark: one publisher and a large audience, CPU of the server process per delivery and
 * latency, for the service alone and as two runners with half the audience each, beside socket.io,
 * taking turns in one run. See README.md.
 */
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { pickCores } from "./machine/cores.ts"
import { type AudienceServer, audienceServers } from "./many/audiences.ts"
import { type Command, Gathered, Window } from "./many/channels-worker.ts"
import { median } from "./many/figures.ts"
import { formatTable, print, requireSockets, writeResult } from "./many/report.ts"
import { startWorker } from "./many/worker.ts"

const plans = {
  full: { rounds: 5, messages: 20, rate: 4 },
  short: { rounds: 2, messages: 12, rate: 4 }
}
const sizes = { full: 10_000, short: 1000 }
/** The highest accepted cost of a delivery, as a share of that of socket.io. */
const target = 0.5
const maxBusyPercent = 85

interface Round extends Window {
  readonly cpuPerDelivery: number
}

const cores = pickCores()
const script = fileURLToPath(new URL("./many/channels-worker.ts", import.meta.url))

function parseOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: "boolean", default: false },
      count: { type: "string" },
      only: { type: "string", multiple: true, default: [] }
    }
  })
  const length = values.short ? ("short" as const) : ("full" as const)
  const count = Number(values.count ?? sizes[length])
  if (!Number.isInteger(count) || count < 1) {
    throw new Error(`--count ${values.count}: want a whole number`)
  }
  const names = audienceServers.map(({ name }) => name)
  const unknown = values.only.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`--only ${unknown}: want one of ${names.join(", ")}`)
  requireSockets(count)
  return {
    count,
    plan: plans[length],
    chosen: audienceServers.filter(
      ({ name }) => values.only.length === 0 || values.only.includes(name)
    ),
    complete: !values.short && values.count === undefined && values.only.length === 0
  }
}

type Options = ReturnType<typeof parseOptions>

/** One server with its audience; `round` measures one window. */
async function gather(server: AudienceServer, count: number, stack: AsyncDisposableStack) {
  const running = await server.start(cores.server)
  stack.defer(running.stop)
  const worker = startWorker(server.name, script, cores.load)
  stack.defer(worker.stop)
  const tell: Command = { t: "gather", server: server.name, target: running.target, count }
  const { millis } = await worker.ask(tell, Gathered)
  const round = async ({ messages, rate }: Options["plan"]): Promise<Round> => {
    const before = await running.cpuMicros()
    const command: Command = { t: "window", messages, rate }
    const window = await worker.ask(command, Window)
    const spent = (await running.cpuMicros()) - before
    return { ...window, cpuPerDelivery: spent / window.deliveries }
  }
  return { name: server.name, gatherMillis: millis, round, rounds: new Array<Round>() }
}

/** `Array.fromAsync` runs one item at a time: no two measurements may overlap. */
async function measure({ chosen, count, plan }: Options) {
  await using stack = new AsyncDisposableStack()
  const gathered = await Array.fromAsync(chosen, (server) => gather(server, count, stack))
  for (const server of gathered) await server.round({ ...plan, messages: 4 })
  const turns = Array.from({ length: plan.rounds }, () => gathered).flat()
  await Array.fromAsync(turns, async (server) => {
    server.rounds.push(await server.round(plan))
  })
  return gathered.map(({ gatherMillis, name, rounds }) => ({ gatherMillis, name, rounds }))
}

type Measured = Awaited<ReturnType<typeof measure>>

const header = [
  "server",
  "CPU us/delivery",
  "of socket.io's",
  "p50 ms",
  "p99 ms",
  "max ms",
  "delivered",
  "expected",
  "joins/s",
  "load core busy"
]

const cpuOf = (rounds: ReadonlyArray<Round>): number =>
  median(rounds.map(({ cpuPerDelivery }) => cpuPerDelivery))

const ratioOf = (servers: Measured, name: string): number | undefined => {
  const peer = servers.find((server) => server.name === "socket.io")
  const server = servers.find((candidate) => candidate.name === name)
  return peer === undefined || server === undefined
    ? undefined
    : cpuOf(server.rounds) / cpuOf(peer.rounds)
}

function row({ gatherMillis, name, rounds }: Measured[number], servers: Measured, count: number) {
  const middle = (figure: (round: Round) => number) => median(rounds.map(figure)).toFixed(1)
  const sum = (figure: (round: Round) => number) => rounds.reduce((all, it) => all + figure(it), 0)
  return [
    name,
    cpuOf(rounds).toFixed(2),
    ratioOf(servers, name)?.toFixed(2) ?? "",
    middle(({ latency }) => latency.p50),
    middle(({ latency }) => latency.p99),
    middle(({ latency }) => latency.max),
    String(sum(({ deliveries }) => deliveries)),
    String(sum(({ expected }) => expected)),
    ((count / gatherMillis) * 1000).toFixed(0),
    `${Math.max(...rounds.map(({ busyPercent }) => busyPercent)).toFixed(0)} %`
  ]
}

function problemsOf(servers: Measured): ReadonlyArray<string> {
  const ratio = ratioOf(servers, "ours")
  const dear = ratio !== undefined && ratio > target
  return [
    ...(dear ? [`ours costs ${ratio.toFixed(2)} of socket.io's CPU, ${target} is the target`] : []),
    ...servers.flatMap(({ name, rounds }) => {
      const lost = rounds.some(({ deliveries, expected }) => deliveries !== expected)
      const busy = Math.max(...rounds.map(({ busyPercent }) => busyPercent))
      return [
        ...(lost ? [`${name}: messages were lost`] : []),
        ...(busy > maxBusyPercent ? [`${name}: void, the load was ${busy.toFixed(0)} % busy`] : [])
      ]
    })
  ]
}

async function benchmark(): Promise<void> {
  const options = parseOptions()
  const servers = await measure(options)
  const { count, plan } = options
  const title = `one publisher, ${plan.rate} messages a second, ${count} subscribers`
  const rows = servers.map((server) => row(server, servers, count))
  print(formatTable(title, header, rows))
  const problems = problemsOf(servers)
  const { complete } = options
  await writeResult({
    name: "channels",
    complete,
    cores,
    plan,
    results: { count, servers },
    problems
  })
  const lost = problems.some((problem) => problem.endsWith("were lost"))
  if (lost || (complete && problems.length > 0)) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
