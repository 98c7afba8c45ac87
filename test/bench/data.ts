/**
 * Data benchmark: guest sign-ins, save puts and stats reports a second over HTTP, of the service and
 * of bare Fastify handlers that do the same statements on the same Postgres. See README.md.
 */
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { pickCores } from "./machine/cores.ts"
import { type Command, Done, Driven, type Operation, operations } from "./data-load/load.ts"
import { type Server, startServers } from "./data-load/servers.ts"
import { median } from "./many/figures.ts"
import { formatTable, print, writeResult } from "./many/report.ts"
import { startWorker, type Worker } from "./many/worker.ts"

const plans = {
  full: { warmUps: 4, rounds: 5, seconds: 5, players: 1000, connections: 50 },
  short: { warmUps: 1, rounds: 2, seconds: 1, players: 200, connections: 50 }
} as const
type Plan = (typeof plans)["full" | "short"]

/** The least share of the bare handlers' rate that the service reaches. */
const targets: Partial<Record<Operation, number>> = { save: 0.6, stats: 0.6 }

const busyMax = 85

interface Measured extends Driven {
  readonly perSecond: number
  /** Microseconds of the server's CPU for each request. */
  readonly cpu: number
}

interface Result {
  readonly operation: Operation
  readonly servers: ReadonlyArray<{ readonly name: string; readonly rounds: Array<Measured> }>
}

const cores = pickCores()
const script = fileURLToPath(new URL("./data-load/load.ts", import.meta.url))

function parseOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] }
    }
  })
  const chosen = operations.filter((name) => values.only.length === 0 || values.only.includes(name))
  const complete = !values.short && chosen.length === operations.length
  return { plan: plans[values.short ? "short" : "full"], chosen, complete }
}

async function measure(
  { server, worker }: Client,
  operation: Operation,
  { connections, seconds }: Pick<Plan, "connections" | "seconds">
): Promise<Measured> {
  const before = await server.cpuMicros()
  const command: Command = { t: "drive", operation, connections, seconds }
  const driven = await worker.ask(command, Driven)
  const cpu = ((await server.cpuMicros()) - before) / driven.requests
  return { ...driven, cpu, perSecond: driven.requests / driven.seconds }
}

interface Client {
  readonly server: Server
  readonly worker: Worker
}

/** A load process for each server, with its guests. */
async function gather(
  servers: ReadonlyArray<Server>,
  players: number,
  stack: AsyncDisposableStack
): Promise<ReadonlyArray<Client>> {
  const clients: Array<Client> = []
  for (const server of servers) {
    const worker = startWorker(server.name, script, cores.load)
    stack.defer(worker.stop)
    const command: Command = { t: "gather", target: server.target, players }
    await worker.ask(command, Done)
    clients.push({ server, worker })
  }
  return clients
}

const header = ["server", "requests/s", "CPU us/request", "p50 ms", "p99 ms", "load core busy"]

const rowsOf = ({ servers }: Result) =>
  servers.map(({ name, rounds }) => [
    name,
    median(rounds.map(({ perSecond }) => perSecond)).toFixed(0),
    median(rounds.map(({ cpu }) => cpu)).toFixed(1),
    median(rounds.map(({ latency }) => latency.p50)).toFixed(1),
    median(rounds.map(({ latency }) => latency.p99)).toFixed(1),
    `${Math.max(...rounds.map(({ busyPercent }) => busyPercent)).toFixed(0)} %`
  ])

/** Ours over the bare handlers', in each round. */
function ratiosOf({ servers }: Result) {
  const [ours, bare] = servers
  const ratios = (ours?.rounds ?? []).flatMap((mine, round) => {
    const other = bare?.rounds[round]
    return other === undefined
      ? []
      : [{ rate: mine.perSecond / other.perSecond, cpu: mine.cpu / other.cpu }]
  })
  return {
    rate: median(ratios.map(({ rate }) => rate)),
    cpu: median(ratios.map(({ cpu }) => cpu))
  }
}

function problemsOf(result: Result): ReadonlyArray<string> {
  const { operation, servers } = result
  const target = targets[operation] ?? 0
  const { rate } = ratiosOf(result)
  const busy = Math.max(
    ...servers.flatMap(({ rounds }) => rounds.map(({ busyPercent }) => busyPercent))
  )
  return [
    ...(rate < target ? [`${operation}: ${rate.toFixed(2)} of the bare rate, want ${target}`] : []),
    ...(busy > busyMax ? [`${operation}: the load core was ${busy.toFixed(0)} % busy`] : [])
  ]
}

async function benchmark(): Promise<void> {
  const { chosen, complete, plan } = parseOptions()
  await using stack = new AsyncDisposableStack()
  const servers = await startServers(cores.server, stack)
  const clients = await gather(servers, plan.players, stack)
  const results: Array<Result> = []
  for (const operation of chosen) {
    const result: Result = {
      operation,
      servers: servers.map(({ name }) => ({ name, rounds: [] }))
    }
    for (let round = -plan.warmUps; round < plan.rounds; round++) {
      for (const [index, client] of clients.entries()) {
        const measured = await measure(client, operation, plan)
        // The first rounds warm up, which takes a compiler its time, and are thrown away.
        if (round >= 0) result.servers[index]?.rounds.push(measured)
      }
    }
    results.push(result)
    print(formatTable(`${operation}, ${plan.connections} connections`, header, rowsOf(result)))
    const { cpu, rate } = ratiosOf(result)
    print(`ours / fastify + pg: rate ${rate.toFixed(2)}, CPU ${cpu.toFixed(2)}`)
  }
  const problems = results.flatMap(problemsOf)
  const ratios = Object.fromEntries(results.map((it) => [it.operation, ratiosOf(it)]))
  await writeResult({ name: "data", complete, cores, plan, results: { ratios, results }, problems })
  if (complete && problems.length > 0) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
