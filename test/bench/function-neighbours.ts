/**
 * What six environments that burn CPU for ever cost their neighbours: another function, and work of the
 * service itself. Both are measured before and meanwhile in one run. See README.md.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { pbkdf2Sync } from "node:crypto"
import { Effect } from "effect"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsWorld, program, withFunctions } from "../support/functions.ts"

const burners = 6
const samples = 400
const pauseMillis = 5

/** Burns after its response, with pauses that a limit of 30 seconds for a call allows. */
const burning = `
  const burn = async () => {
    for (;;) {
      const end = Date.now() + 50
      while (Date.now() < end);
      await new Promise((resolve) => setTimeout(resolve, 0))
    }
  }
  export default { fetch(request, env, ctx) {
    ctx.waitUntil(burn())
    return new Response("ok")
  } }`

const pause = () => new Promise((resolve) => setTimeout(resolve, pauseMillis))

const timed = async (url: string): Promise<number> => {
  const start = performance.now()
  const response = await fetch(url)
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  return performance.now() - start
}

const measured = async (url: string): Promise<ReadonlyArray<number>> => {
  const times: Array<number> = []
  for (let i = 0; i < samples; i += 1) {
    times.push(await timed(url))
    await pause()
  }
  return times.toSorted((a, b) => a - b)
}

const at = (sorted: ReadonlyArray<number>, q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0

const print = (name: string, before: ReadonlyArray<number>, meanwhile: ReadonlyArray<number>) => {
  const [calm, busy] = [at(before, 0.9), at(meanwhile, 0.9)]
  console.log(
    `${name.padEnd(28)} p50 ${at(before, 0.5).toFixed(1)} -> ${at(meanwhile, 0.5).toFixed(1)} ms, ` +
      `p90 ${calm.toFixed(1)} -> ${busy.toFixed(1)} ms, ratio ${(busy / calm).toFixed(2)}`
  )
}

/** Work of the service: some milliseconds of CPU in this process, as a sign-in takes. */
const startService = () =>
  new Promise<{ readonly url: string; readonly close: () => void }>((resolve) => {
    const server = createServer((_request, response) => {
      pbkdf2Sync("password", "salt", 5000, 32, "sha256")
      response.end("ok")
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      resolve({ url: `http://127.0.0.1:${port}`, close: () => server.close() })
    })
  })

const measure = Effect.gen(function* () {
  const world = yield* FunctionsWorld
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return yield* Effect.die(new Error(local))
  const { hosts } = local
  const promise = <A>(run: () => Promise<A>) => Effect.promise(run)
  const service = yield* promise(startService)
  const quiet = world.live(program("export default { fetch: () => new Response('ok') }"))
  const urls = { service: service.url, neighbour: `${world.url}/${quiet}/` }
  yield* promise(() => timed(urls.neighbour))
  const before = {
    service: yield* promise(() => measured(urls.service)),
    neighbour: yield* promise(() => measured(urls.neighbour))
  }
  const limits = { cpuMs: 30_000 }
  const hogs = Array.from({ length: burners }, () => world.live(program(burning, { limits })))
  yield* promise(() => Promise.all(hogs.map((id) => timed(`${world.url}/${id}/`))))
  print("work of the service", before.service, yield* promise(() => measured(urls.service)))
  print("another function", before.neighbour, yield* promise(() => measured(urls.neighbour)))
  const running = hogs.filter((id) => hosts.known(id)?.supervisor.process !== undefined).length
  const used = hogs.map((id) => ((world.usage.get(id)?.cpuMillis ?? 0) / 1000).toFixed(1))
  console.log(`${running} of ${burners} still burn; CPU seconds used: ${used.join(", ")}`)
  service.close()
  return undefined
})

const seconds = process.argv[2] ?? "30"
await Effect.runPromise(
  Effect.provide(measure, withFunctions({ SVC_FUNCTIONS_CPU_SECONDS_PER_MINUTE: seconds }))
)
