/** Uploads to functions that take longer than a call may wait, or whose connection closes after the response. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { at } from "#testing/players"
import { deploy, enable } from "../../../support/function-calls.ts"
import { upload } from "../../../support/function-uploads.ts"
import { TwoRunners } from "../../../support/two-runners.ts"

const code = `
  export default { fetch: async (request) =>
    new URL(request.url).pathname === "/refused"
      ? new Response("no", { status: 403 })
      : new Response("read " + (await request.arrayBuffer()).byteLength) }`

const bytesPerSecond = 50_000
const seconds = functionRuntime.passedResponseMillis / 1000 + 10
const bytes = seconds * bytesPerSecond

layer(TwoRunners.layerWith(), { excludeTestServices: true, timeout: "240 seconds" })(
  "slow uploads to functions",
  (it) => {
    it.effect(
      "lets a slow upload to a function go on while it moves, and passes an early answer, on either runner",
      () =>
        Effect.gen(function* () {
          const { at1, first, second } = yield* TwoRunners
          yield* enable(at1)
          const { pathname } = new URL(String(at(yield* deploy(at1, {}, code), "url")))
          for (const { url } of [first, second, first, second]) {
            const refused = { url: `${url}${pathname}/refused`, bytes: 20_000_000, closes: true }
            assert.match(yield* Effect.promise(() => upload(refused)), /^HTTP\/1\.1 403 [^]*no/)
          }
          const answers = yield* Effect.forEach(
            [first, second],
            ({ url }) =>
              Effect.promise(() => upload({ url: url + pathname, bytes, bytesPerSecond })),
            { concurrency: "unbounded" }
          )
          for (const answer of answers) {
            assert.match(answer, new RegExp(`^HTTP/1\\.1 200 [^]*read ${bytes}`))
          }
        }),
      240_000
    )
  }
)
