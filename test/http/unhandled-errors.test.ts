/** Errors that nobody has handled: that of a request ends it alone, any other ends the process. */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const main = fileURLToPath(new URL("../support/http/failing-server.ts", import.meta.url))

interface Running {
  readonly url: string
  readonly child: ChildProcess
  /** The next line of its report. */
  readonly line: Effect.Effect<Record<string, unknown>>
  readonly exit: Promise<number | null>
}

const failingServer = Effect.acquireRelease(
  Effect.promise(async (): Promise<Running> => {
    const child = spawn(process.execPath, [main], { stdio: ["ignore", "pipe", "inherit"] })
    const exit = new Promise<number | null>((resolve, reject) => {
      child.on("error", reject).on("exit", resolve)
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const next = async () => JSON.parse((await lines.next()).value ?? "null")
    const { port } = await next()
    return { url: `http://127.0.0.1:${port}`, child, line: Effect.promise(next), exit }
  }),
  ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
)

const get = (url: string, headers: Record<string, string> = {}) =>
  Effect.promise(async () => {
    const response = await fetch(url, { headers })
    return { status: response.status, text: await response.text() }
  })

describe("errors that nobody has handled", () => {
  it.effect("end their request alone, with its id in the answer and in the log", () =>
    Effect.gen(function* () {
      const { child, line, url } = yield* failingServer
      for (const path of ["/throw", "/timer", "/tick", "/emitter", "/promise"]) {
        const requestId = `id-of.${path.slice(1)}`
        const { status, text } = yield* get(url + path, { "x-request-id": requestId })
        assert.strictEqual(status, 500, path)
        const { error } = JSON.parse(text)
        assert.strictEqual(error.code, "internal_error")
        assert.deepStrictEqual(error.details, { requestId })
        assert.strictEqual((yield* line)["requestId"], requestId)
        assert.strictEqual((yield* get(`${url}/fine`)).text, "fine")
      }
      assert.isNull(child.exitCode)
    }).pipe(Effect.scoped)
  )

  it.effect("end the process outside of a request, also after one of a request", () =>
    Effect.gen(function* () {
      const { exit, line, url } = yield* failingServer
      assert.strictEqual((yield* get(`${url}/tick`)).status, 500)
      yield* line
      yield* Effect.promise(() => fetch(`${url}/outside`).catch(() => undefined))
      assert.deepStrictEqual(yield* line, { fatal: "Error: /throw" })
      assert.strictEqual(yield* Effect.promise(() => exit), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("end the process if they are failed assertions", () =>
    Effect.gen(function* () {
      const { exit, line, url } = yield* failingServer
      yield* Effect.promise(() => fetch(`${url}/assertion`).catch(() => undefined))
      assert.match(String((yield* line)["fatal"]), /AssertionError/)
      assert.strictEqual(yield* Effect.promise(() => exit), 1)
    }).pipe(Effect.scoped)
  )
})
