/**
 * Deploy benchmark: all players of one runner lose their connections when it stops, and try until its
 * successor has them back in their rooms. See README.md.
 */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Redacted, type Schema, Scope } from "effect"
import { embeddedPostgres } from "#server/platform/postgres/embedded"
import { pickCores } from "./machine/cores.ts"
import { type Command, Done, Entered, Returned } from "./many/deploy-worker.ts"
import { formatTable, print, requireSockets, writeResult } from "./many/report.ts"
import { call, developmentKeys, inheritedEnvironment } from "./many/service.ts"
import { startWorker } from "./many/worker.ts"
import { raiseOpenFiles } from "./many/open-files.ts"
import { slowDown } from "./machine/slow-core.ts"
import { quantilesOf } from "./many/figures.ts"
import { freePort, launchServer } from "./machine/process.ts"

const defaultCount = 20_000
const shortCount = 800
const roomSize = 8
/** The benchmark fails when a seat is lost on a core of a third of the speed. */
const defaultSlowdown = 3
const patienceMillis = 300_000
/** Files of a runner beside its sockets. */
const spareFiles = 2000
/** Processes of players, each with a loopback address of its own. */
const localAddresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]
const mode = "eight"
const config = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: { modes: [{ key: mode, minPlayers: roomSize, maxPlayers: roomSize }] }
}

const main = fileURLToPath(new URL("../../src/server/main.ts", import.meta.url))
const script = fileURLToPath(new URL("./many/deploy-worker.ts", import.meta.url))
const cores = pickCores()

function parseOptions() {
  const { values } = parseArgs({
    options: {
      short: { type: "boolean", default: false },
      count: { type: "string" },
      slowdown: { type: "string", default: String(defaultSlowdown) }
    }
  })
  const wanted = Number(values.count ?? (values.short ? shortCount : defaultCount))
  if (!Number.isInteger(wanted) || wanted < roomSize) {
    throw new Error(`--count ${values.count}: want a whole number from ${roomSize}`)
  }
  const slowdown = Number(values.slowdown)
  if (!(slowdown >= 1)) throw new Error(`--slowdown ${values.slowdown}: want a number from 1`)
  const count = wanted - (wanted % (roomSize * localAddresses.length))
  raiseOpenFiles(count + spareFiles)
  requireSockets(count, localAddresses.length)
  const complete = !values.short && values.count === undefined && slowdown === defaultSlowdown
  return { count, slowdown, complete }
}

/** Starts Postgres, which outlives the runners, and returns how to start one. */
async function prepare(stack: AsyncDisposableStack, count: number, slowdown: number) {
  const dataDir = await mkdtemp(join(tmpdir(), "bench-"))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Postgres may run as another user than the service and has to get in.
  await chmod(dataDir, 0o755)
  const scope = Scope.makeUnsafe()
  stack.defer(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const { url } = await Effect.runPromise(
    Scope.provide(embeddedPostgres({ dataDir }), scope).pipe(Effect.provide(NodeServices.layer))
  )
  const port = await freePort()
  const env = {
    ...inheritedEnvironment(),
    HOST: "127.0.0.1",
    PORT: `${port}`,
    DATABASE_URL: Redacted.value(url),
    SVC_BASE_URL: "http://bench.localhost",
    SVC_DATA_DIR: dataDir,
    SVC_MAX_CONNECTIONS: String(count * 2),
    SVC_THROTTLES: "off"
  }
  const server = { script: main, core: cores.server, port, env }
  return {
    dataDir,
    start: () => launchServer(server),
    /** The successor starts on a slow core: there all players come back. */
    startSlowly: async () => {
      const slow = slowDown(cores.server, slowdown, dataDir)
      stack.defer(slow.stop)
      const { executable } = slow
      const after = await launchServer({
        ...server,
        ...(executable === undefined ? {} : { executable })
      })
      return { after, how: slow.how }
    }
  }
}

const now = (): number => performance.timeOrigin + performance.now()

/** Asks all processes of players for the same. */
function startPlayers(stack: AsyncDisposableStack) {
  const workers = localAddresses.map((localAddress) => {
    const worker = startWorker(`players of ${localAddress}`, script, cores.load)
    stack.defer(worker.stop)
    return { localAddress, worker }
  })
  return <A>(
    command: (localAddress: string) => Command,
    answer: Parameters<(typeof workers)[number]["worker"]["ask"]>[1] & Schema.Decoder<A>
  ): Promise<ReadonlyArray<A>> =>
    Promise.all(
      workers.map(({ localAddress, worker }) => worker.ask<A>(command(localAddress), answer))
    )
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

/** What all processes of players saw together. */
const together = (parts: ReadonlyArray<Returned>) => ({
  firstLostAt: Math.min(...parts.map(({ firstLostAt }) => firstLostAt)),
  lastLostAt: Math.max(...parts.map(({ lastLostAt }) => lastLostAt)),
  lastBackAt: Math.max(...parts.map(({ lastBackAt }) => lastBackAt)),
  back: sum(parts.map(({ back }) => back)),
  seatsLost: sum(parts.map(({ lost }) => lost)),
  losses: parts.flatMap(({ losses }) => losses),
  away: quantilesOf(parts.flatMap(({ awayMillis }) => awayMillis)),
  attempts: sum(parts.map(({ attempts }) => attempts)),
  busyPercent: sum(parts.map(({ busyPercent }) => busyPercent))
})

async function measure(count: number, slowdown: number) {
  await using stack = new AsyncDisposableStack()
  const { dataDir, start, startSlowly } = await prepare(stack, count, slowdown)
  const before = await start()
  stack.defer(before.stop)
  const keys = developmentKeys(await readFile(join(dataDir, "dev-keys.json"), "utf8"))
  const secret = { "x-svc-key": keys.secretKey }
  await call("PUT", `${before.target.url}/v1/config`, secret, config)
  const ask = startPlayers(stack)
  const target = { ...before.target, key: keys.publishableKey }
  const share = count / localAddresses.length
  await ask((localAddress) => ({ t: "gather", target, count: share, localAddress }), Done)
  const cpuBefore = await before.cpuMicros()
  const entered = await ask(() => ({ t: "enter", mode }), Entered)
  const cpuPerEntry = ((await before.cpuMicros()) - cpuBefore) / count
  const stopAt = now()
  const returning = ask(() => ({ t: "return", patienceMillis }), Returned)
  await before.stop()
  const stoppedAt = now()
  const { after, how } = await startSlowly()
  stack.defer(after.stop)
  const readyAt = now()
  const cpuReady = await after.cpuMicros()
  const returned = together(await returning)
  const cpuPerReturn = ((await after.cpuMicros()) - cpuReady) / returned.back
  return {
    count,
    core: how,
    enteredPerSecond: count / Math.max(...entered.map(({ seconds }) => seconds)),
    cpuPerEntry,
    stopMillis: stoppedAt - stopAt,
    readyMillis: readyAt - stopAt,
    backMillis: returned.lastBackAt - readyAt,
    cpuPerReturn,
    ...returned
  }
}

type Figures = Awaited<ReturnType<typeof measure>>

const header = [
  "players",
  "enter/s",
  "CPU us/entry",
  "stopped ms",
  "ready ms",
  "all back ms after ready",
  "CPU us/return",
  "away p50 ms",
  "attempts",
  "seats lost",
  "not back",
  "load core busy"
]

const rowOf = (figures: Figures): ReadonlyArray<string> => [
  String(figures.count),
  figures.enteredPerSecond.toFixed(0),
  figures.cpuPerEntry.toFixed(0),
  figures.stopMillis.toFixed(0),
  figures.readyMillis.toFixed(0),
  figures.backMillis.toFixed(0),
  figures.cpuPerReturn.toFixed(0),
  figures.away.p50.toFixed(0),
  String(figures.attempts),
  String(figures.seatsLost),
  String(figures.count - figures.back - figures.seatsLost),
  `${figures.busyPercent.toFixed(0)} %`
]

async function benchmark(): Promise<void> {
  const { complete, count, slowdown } = parseOptions()
  const results = await measure(count, slowdown)
  const title = `${count} players, one runner stops and starts, a core slowed ${slowdown} times (${results.core})`
  print(formatTable(title, header, [rowOf(results)]))
  const missing = count - results.back
  const problems = missing === 0 ? [] : [`${missing} players did not return to their rooms`]
  const plan = { count, roomSize, slowdown }
  await writeResult({ name: "deploy", complete, cores, plan, results, problems })
  if (missing > 0) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
