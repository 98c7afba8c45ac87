/** CPU time of functions that no call explains, on real workerd. */
import { readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { FunctionHosts } from "#server/features/functions/host/local"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

/** Burns CPU time in pauses of its calls, and after them, with a limit of a call that allows it. */
const burner = `
  const burn = async () => {
    for (;;) {
      const end = Date.now() + 20
      while (Date.now() < end);
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
  export default {
    fetch(request, env, ctx) {
      if (request.url.endsWith("after")) ctx.waitUntil(burn())
      return new Response("ok")
    },
    scheduled: burn
  }`

layer(withFunctions({ SVC_FUNCTIONS_CPU_SECONDS_PER_MINUTE: "1" }), live)(
  "functions that burn",
  (it) => {
    const burning = (start: "after" | "cron") =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const runtime = yield* FunctionsRuntime
        const { local } = yield* FunctionHosts
        if (typeof local === "string") return assert.fail(local)
        const id = world.live(program(burner, { limits: { cpuMs: 30_000 } }))
        const get = (path = "") =>
          Effect.promise(() => fetch(`${world.url}/${id}/${path}`).then((answer) => answer.text()))
        assert.strictEqual(yield* get(), "ok")
        if (start === "after") assert.strictEqual(yield* get("after"), "ok")
        else {
          const failure = yield* Effect.flip(runtime.scheduled(id, "* * * * *", 0))
          assert.strictEqual(failure._tag, "function_cpu_exceeded")
        }
        const host = local.hosts.of(id)
        yield* eventually(() => host.supervisor.process === undefined, "the process is ended")
        const refused = JSON.parse(yield* get()).error
        assert.strictEqual(refused.code, "unavailable")
        assert.match(refused.message, /CPU time of a minute. Calls begin again in \d+ s/)
        const isNoted = () => world.logs.some(({ message }) => /CPU time of a minute/.test(message))
        yield* eventually(isNoted, "the logs say why")
        assert.isBelow(world.usage.get(id)?.cpuMillis ?? 0, 3000)
        assert.isFalse(world.suspended.has(id))
      })

    it.effect("after a response stop at the budget of a minute", () => burning("after"), {
      tags: "long"
    })
    it.effect("in a cron stop at the budget of a minute", () => burning("cron"))

    it.effect("run at a lower priority than the service", () =>
      Effect.gen(function* () {
        const world = yield* FunctionsWorld
        const { local } = yield* FunctionHosts
        if (typeof local === "string") return assert.fail(local)
        const id = world.live(program("export default { fetch: () => new Response('ok') }"))
        yield* Effect.promise(() => fetch(`${world.url}/${id}/`))
        const pid = local.hosts.of(id).supervisor.process?.pid
        const niceness = (path: string) =>
          Number(readFileSync(path, "latin1").split(") ")[1]?.split(" ")[16])
        assert.isAbove(niceness(`/proc/${pid}/stat`), niceness("/proc/self/stat"))
      })
    )
  }
)
