/**
 * Functions: cold start, what the service adds to a warm call, calls a second, memory, and what a function
 * that never ends costs itself and its neighbours. See README.md.
 */
import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { Effect } from "effect"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionsWorld, program, withFunctions } from "../support/functions.ts"

const agent = new Agent({ keepAlive: true })

interface Destination {
  readonly socketPath?: string
  readonly port?: number
  readonly path: string
  readonly headers?: Record<string, string>
}

/** Milliseconds of one call; rejects unless it answers 200 or `status`. */
const timed = (to: Destination, status = 200): Promise<number> =>
  new Promise((resolve, reject) => {
    const start = performance.now()
    const sent = request({ agent, host: "127.0.0.1", ...to }, (response) => {
      response.resume()
      response.on("end", () => {
        if (response.statusCode === status) resolve(performance.now() - start)
        else reject(new Error(`${to.path} answered ${response.statusCode}`))
      })
    })
    sent.on("error", reject)
    sent.end()
  })

const quantile = (values: ReadonlyArray<number>, q: number): string => {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0).toFixed(2)
}

const spread = (values: ReadonlyArray<number>): string =>
  `p50 ${quantile(values, 0.5)} ms, p99 ${quantile(values, 0.99)} ms`

/** Calls one after the other. */
const repeat = async (
  count: number,
  call: () => Promise<number>
): Promise<ReadonlyArray<number>> => {
  const times: Array<number> = []
  for (let i = 0; i < count; i += 1) times.push(await call())
  return times
}

const source = `export default { fetch(request) {
  if (request.url.endsWith("/spin")) while (true);
  return new Response("ok")
} }`

const ram = (pid: number): string => {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")
  const of = (name: string) =>
    Number(new RegExp(`^${name}: +(\\d+)`, "m").exec(text)?.[1] ?? 0) / 1024
  return `${of("Rss").toFixed(0)} MiB resident, ${of("Private_Dirty").toFixed(0)} MiB of its own`
}

const coldStarts = 10
const calls = 1000
const atOnce = 16
const throughputMillis = 4000
const spinMillis = 200

const print = (name: string, value: string) => console.log(`${name.padEnd(44)} ${value}`)

/** What a function that never ends costs itself, and a neighbour. */
const measureSpin = async (
  own: Destination,
  spinning: Destination,
  neighbour: Destination
): Promise<void> => {
  const before = await repeat(calls, () => timed(neighbour))
  const progress = { isSpinning: true }
  const spins: Array<number> = []
  const restarts: Array<number> = []
  const spin = async () => {
    for (let i = 0; i < spinCount; i += 1) {
      spins.push(await timed(spinning, 503))
      restarts.push(await timed(own))
    }
    progress.isSpinning = false
  }
  const meanwhile: Array<number> = []
  const spun = spin()
  while (progress.isSpinning) meanwhile.push(await timed(neighbour))
  await spun
  print(`from a spin to its end (cpuMs ${spinMillis})`, spread(spins))
  print("the first call after the end", spread(restarts))
  print("a neighbour before", spread(before))
  print("a neighbour meanwhile", spread(meanwhile))
}

const spinCount = 5

const measure = Effect.gen(function* () {
  const world = yield* FunctionsWorld
  const runtime = yield* FunctionsRuntime
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return yield* Effect.die(new Error(local))
  const port = Number(new URL(world.url).port)
  const to = (id: string, path = ""): Destination => ({ port, path: `/${id}/${path}` })
  const made = () => world.live(program(source, { limits: { cpuMs: spinMillis } }))
  const promise = <A>(run: () => Promise<A>) => Effect.promise(run)

  const first = made()
  print("first call of the runner", `${(yield* promise(() => timed(to(first)))).toFixed(0)} ms`)
  const cold = yield* promise(() => repeat(coldStarts, () => timed(to(made()))))
  print("cold start with compilation", spread(cold))
  const again: Array<number> = []
  for (let i = 0; i < coldStarts; i += 1) {
    yield* promise(() => local.hosts.of(first).supervisor.exclusively(0, async () => undefined))
    again.push(yield* promise(() => timed(to(first))))
  }
  print("cold start of a known version", spread(again))

  // Calls past the service are work outside calls to the supervisor, which bounds it.
  const open = world.live(program(source, { limits: { cpuMs: 30_000 } }))
  yield* promise(() => timed(to(open)))
  const running = local.hosts.of(open)
  const process = running.supervisor.process
  if (process === undefined) return yield* Effect.die(new Error("it does not run"))
  const bare = (): Destination => ({
    socketPath: process.sockets.main,
    path: "/",
    headers: running.fetchHeaders(
      process,
      { method: "GET", framing: "" },
      { url: "http://game.example/", clientAddress: "192.0.2.1", playerId: undefined }
    )
  })
  yield* promise(() => repeat(calls, () => timed(bare())))
  print(
    "warm call, the bare runtime",
    spread(yield* promise(() => repeat(calls, () => timed(bare()))))
  )
  yield* promise(() => repeat(calls, () => timed(to(open))))
  const warm = yield* promise(() => repeat(calls, () => timed(to(open))))
  print("warm call through the service", spread(warm))

  const throughput = async (destination: () => Destination): Promise<string> => {
    let count = 0
    const end = performance.now() + throughputMillis
    const caller = async () => {
      while (performance.now() < end) {
        await timed(destination())
        count += 1
      }
    }
    await Promise.all(Array.from({ length: atOnce }, caller))
    return `${Math.round((count / throughputMillis) * 1000)} a second`
  }
  print(`calls, ${atOnce} at once, the bare runtime`, yield* promise(() => throughput(bare)))
  print(
    `calls, ${atOnce} at once, through the service`,
    yield* promise(() => throughput(() => to(open)))
  )
  const idle = made()
  yield* promise(() => timed(to(idle)))
  print("memory of an environment", ram(local.hosts.of(idle).supervisor.process?.pid ?? 0))

  yield* promise(() => measureSpin(to(first), to(first, "spin"), to(idle)))
  yield* runtime.stop(first)
  return undefined
})

await Effect.runPromise(Effect.provide(measure, withFunctions({ SVC_FUNCTIONS_PROCESSES: "64" })))
