/**
 * Responses of a function that say something wrong about themselves, on connections that carry the requests
 * of several callers: each caller gets its own response, or the end of the connection.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestDatabase } from "#testing/app"
import type { TestPlayer } from "#testing/players"
import { responsesIn, Wire } from "../../support/http/wire.ts"
import { hostileCode } from "../../support/passing/hostile-answers.ts"
import { startPassingWorld, type Way } from "../../support/passing/recorded-function.ts"
import { DatabaseLive } from "../../support/service.ts"

const patient = { excludeTestServices: true, timeout: "600 seconds" } as const
const waitMillis = 30_000
const methods = ["GET", "HEAD", "POST"] as const

const Names = Schema.fromJsonString(Schema.Array(Schema.String))

const requestOf = (way: Way, method: string, path: string, player: TestPlayer): string =>
  `${method} ${way.path}/${path} HTTP/1.1\r\nHost: ${way.host}\r\n` +
  `Authorization: Bearer ${player.accessToken}\r\n` +
  (method === "POST" ? "Content-Length: 2\r\n\r\nok" : "\r\n")

interface Case {
  readonly way: Way
  readonly method: string
  readonly name: string
  readonly isPipelined: boolean
}

/** Returns what is wrong with the responses to a hostile call and to the one behind it. */
const faultOf = async (
  { isPipelined, method, name, way }: Case,
  call: string,
  player: TestPlayer
): Promise<string | undefined> => {
  const wire = new Wire(way.url)
  const responses = () => responsesIn(wire.received, [method])
  const whole = () => responses().filter(({ isWhole }) => isWhole).length
  const next = requestOf(way, isPipelined ? "GET" : "POST", `own/${call}`, player)
  wire.send(requestOf(way, method, `hostile/${encodeURIComponent(name)}`, player))
  if (!isPipelined) await wire.until(() => whole() > 0, waitMillis)
  wire.send(next)
  const answered = await wire.until(() => whole() > 1, waitMillis)
  await wire.end(waitMillis)
  const [, second, ...others] = responses()
  if (!answered) return "the next caller waits in vain"
  if (others.length > 0) return `there are ${others.length} more responses`
  const isOwn =
    second?.headers.get("x-call") === call && second.headers.get("x-player") === player.id
  if (second !== undefined && !isOwn) return `the next caller gets ${second.status} ${second.body}`
  return undefined
}

layer(DatabaseLive, patient)("responses of a function with any framing", (it) => {
  it.effect(
    "never reach the next caller of a connection, nor the log of either runner",
    () =>
      Effect.gen(function* () {
        const { url: databaseUrl } = yield* TestDatabase
        const world = yield* startPassingWorld({ databaseUrl, code: hostileCode })
        const text = yield* Effect.promise(async () => (await fetch(`${world.url}/names`)).text())
        const names = yield* Schema.decodeUnknownEffect(Names)(text)
        const [player] = world.players
        const found: Array<string> = []
        let calls = 0
        for (const way of [world.ways.service, world.ways.proxiedApp]) {
          for (const name of names) {
            for (const method of methods) {
              calls += 1
              const one = { way, method, name, isPipelined: calls % 2 === 0 }
              const fault = yield* Effect.promise(() => faultOf(one, `own${calls}`, player))
              if (fault !== undefined) found.push(`${method} ${name} at ${way.name}: ${fault}`)
            }
          }
        }
        assert.deepStrictEqual(found, [])
        // A function can do all this at will, so no call of it may fill the log of the service.
        const outputs = [world.first.output(), world.second.output()]
        for (const output of outputs) assert.notInclude(output, "Failed to")
      }).pipe(Effect.scoped),
    600_000
  )
})
