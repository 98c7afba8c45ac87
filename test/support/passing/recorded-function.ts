/** Two runners, a function on the first of them, and the ways of clients to it. */
import { Context, Effect, Layer } from "effect"
import { TestDatabase } from "#testing/app"
import { at, guest, type TestPlayer, type TestTarget } from "#testing/players"
import { type Runner, startCluster } from "#testing/runners"
import { call, deploy, enableWith } from "../function-calls.ts"
import { DatabaseLive } from "../service.ts"
import { recorderCode } from "./recorder.ts"

const domain = "apps.example.net"

/** A way of a client to the function. */
export interface Way {
  readonly name: string
  /** The runner to which clients connect. */
  readonly url: string
  readonly host: string
  /** Path of the function's root. */
  readonly path: string
}

export interface Ways {
  /** `/fn/<label>` of the runner that has the function. */
  readonly service: Way
  /** `/.fn` of the app's own origin, on the same runner. */
  readonly app: Way
  /** `/fn/<label>` of the other runner, which passes calls on. */
  readonly proxied: Way
  /** `/.fn` of the app's own origin on the other runner. */
  readonly proxiedApp: Way
}

const waysOf = (first: Runner, second: Runner, label: string): Ways => {
  const below = (runner: Runner, name: string): Way => ({
    name,
    url: runner.url,
    host: new URL(runner.url).host,
    path: `/fn/${label}`
  })
  const ofApp = (runner: Runner, name: string): Way => ({
    name,
    url: runner.url,
    host: `${label}.${domain}`,
    path: "/.fn"
  })
  return {
    service: below(first, "/fn"),
    app: ofApp(first, "/.fn"),
    proxied: below(second, "/fn of the other runner"),
    proxiedApp: ofApp(second, "/.fn of the other runner")
  }
}

export interface PassingWorld {
  readonly first: Runner
  readonly second: Runner
  readonly target: TestTarget
  readonly ways: Ways
  /** Where the function answers on the runner that has it. */
  readonly url: string
  readonly players: readonly [TestPlayer, TestPlayer, TestPlayer]
}

/** Sets the secret of the function, which ends its process: the next call starts one. */
export const setRound = Effect.fnUntraced(function* (target: TestTarget, value: string) {
  const answer = yield* call(target, "PUT", "/secrets/ROUND", { value })
  if (answer.status !== 200) {
    return yield* Effect.die(new Error(`No secret was set: ${JSON.stringify(answer.body)}`))
  }
})

export const startPassingWorld = Effect.fnUntraced(function* (options: {
  readonly databaseUrl: string
  readonly code: string
  readonly env?: Readonly<Record<string, string>>
}) {
  const { code, databaseUrl, env } = options
  const { runners, target } = yield* startCluster({
    databaseUrl,
    size: 2,
    env: { SVC_HOSTING_DOMAIN: domain, SVC_LOG_LEVEL: "warning", SVC_DEMO_GAMES: "off", ...env }
  })
  const [first, second] = runners
  if (first === undefined || second === undefined) return yield* Effect.die("No cluster")
  // What the tests measure is not how much CPU time their calls take.
  yield* enableWith(target, { cpuMs: 30_000 })
  yield* setRound(target, "0")
  const deployed = yield* deploy(target, { bindings: [{ name: "ROUND", type: "secret" }] }, code)
  const address = String(at(deployed, "url"))
  const label = address.slice(address.lastIndexOf("/") + 1)
  const [a, b, c] = yield* Effect.all([guest(target), guest(target), guest(target)])
  const url = `${first.url}/fn/${label}`
  const ways = waysOf(first, second, label)
  return { first, second, target, ways, url, players: [a, b, c] } satisfies PassingWorld
})

/** A function that records what reaches it. */
export class RecordedFunction extends Context.Service<RecordedFunction, PassingWorld>()(
  "test/support/passing/recorded-function/RecordedFunction"
) {
  static readonly layer = Layer.effect(
    RecordedFunction,
    Effect.flatMap(TestDatabase, ({ url: databaseUrl }) =>
      startPassingWorld({ databaseUrl, code: recorderCode })
    )
  ).pipe(Layer.provide(DatabaseLive))
}
