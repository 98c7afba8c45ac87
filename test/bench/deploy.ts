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
import { Effect, Exit, Redacted, Scope } from "effect"
import { embeddedPostgres } from "#server/platform/postgres/embedded"
import { pickCores } from "./machine/cores.ts"
import { type Command, Done, Entered, Returned } from "./many/deploy-worker.ts"
import { formatTable, print, requireSockets, writeResult } from "./many/report.ts"
import { call, developmentKeys, inheritedEnvironment } from "./many/service.ts"
import { startWorker } from "./many/worker.ts"
import { freePort, launchServer } from "./machine/process.ts"

const defaultCount = 10_000
const shortCount = 800
const roomSize = 8
const patienceMillis = 60_000
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
    options: { short: { type: "boolean", default: false }, count: { type: "string" } }
  })
  const wanted = Number(values.count ?? (values.short ? shortCount : defaultCount))
  if (!Number.isInteger(wanted) || wanted < roomSize) {
    throw new Error(`--count ${values.count}: want a whole number from ${roomSize}`)
  }
  const count = wanted - (wanted % roomSize)
  requireSockets(count)
  return { count, complete: !values.short && values.count === undefined }
}

/** Starts Postgres, which outlives the runners, and returns how to start one. */
async function prepare(stack: AsyncDisposableStack) {
  const dataDir = await mkdtemp(join(tmpdir(), "bench-"))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Postgres may run as another user than the service and has to get in.
  await chmod(dataDir, 0o755)
  const scope = Scope.makeUnsafe()
  stack.defer(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const url = await Effect.runPromise(
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
    SVC_THROTTLES: "off"
  }
  return { dataDir, start: () => launchServer({ script: main, core: cores.server, port, env }) }
}

const now = (): number => performance.timeOrigin + performance.now()

async function measure(count: number) {
  await using stack = new AsyncDisposableStack()
  const { dataDir, start } = await prepare(stack)
  const before = await start()
  stack.defer(before.stop)
  const keys = developmentKeys(await readFile(join(dataDir, "dev-keys.json"), "utf8"))
  const secret = { "x-svc-key": keys.secretKey }
  await call("PUT", `${before.target.url}/v1/config`, secret, config)
  const worker = startWorker("players", script, cores.load)
  stack.defer(worker.stop)
  const ask = <A>(command: Command, answer: Parameters<typeof worker.ask<A>>[1]) =>
    worker.ask(command, answer)
  const target = { ...before.target, key: keys.publishableKey }
  await ask({ t: "gather", target, count }, Done)
  const cpuBefore = await before.cpuMicros()
  const entered = await ask({ t: "enter", mode }, Entered)
  const cpuPerEntry = ((await before.cpuMicros()) - cpuBefore) / count
  const stopAt = now()
  const returning = ask({ t: "return", patienceMillis }, Returned)
  await before.stop()
  const stoppedAt = now()
  const after = await start()
  stack.defer(after.stop)
  const readyAt = now()
  const cpuReady = await after.cpuMicros()
  const returned = await returning
  const cpuPerReturn = ((await after.cpuMicros()) - cpuReady) / returned.back
  return {
    count,
    enteredPerSecond: count / entered.seconds,
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
  String(figures.count - figures.back),
  `${figures.busyPercent.toFixed(0)} %`
]

async function benchmark(): Promise<void> {
  const { complete, count } = parseOptions()
  const results = await measure(count)
  print(formatTable(`${count} players, one runner stops and starts`, header, [rowOf(results)]))
  const missing = count - results.back
  const problems = missing === 0 ? [] : [`${missing} players did not return to their rooms`]
  const plan = { count, roomSize }
  await writeResult({ name: "deploy", complete, cores, plan, results, problems })
  if (missing > 0) process.exitCode = 1
}

await benchmark().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
