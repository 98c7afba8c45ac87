/**
 * Measures response times of pairs of requests that must be indistinguishable: 300 samples each, sent
 * alternately, with their medians compared. Run it on an idle machine:
 * `node test/support/security/timing.ts`. `enumeration.test.ts` proves on any machine that both requests
 * do the same work.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Clock, Config, Effect, Layer } from "effect"
import { TestApp, TestDatabase } from "#testing/app"
import { configure, guest, request } from "#testing/players"
import { emailConfig } from "../email/email-harness.ts"
import { makeProject, signUp } from "../operator-harness.ts"

type Ask = Effect.Effect<unknown>

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const measure = Effect.fnUntraced(function* (ask: Ask) {
  const start = yield* Clock.currentTimeNanos
  yield* ask
  return Number((yield* Clock.currentTimeNanos) - start) / 1e6
})

/** Logs both medians in milliseconds and their relative difference. */
const compare = Effect.fnUntraced(function* (name: string, one: Ask, other: Ask, samples: number) {
  const times: [Array<number>, Array<number>] = [[], []]
  yield* Effect.all([one, other])
  for (let i = 0; i < samples; i++) {
    // Alternates the order, so that drift affects both.
    const first = i % 2 === 0
    times[first ? 0 : 1].push(yield* measure(first ? one : other))
    times[first ? 1 : 0].push(yield* measure(first ? other : one))
  }
  const [a, b] = [median(times[0]), median(times[1])]
  const off = Math.abs(b / a - 1) * 100
  const medians = `${a.toFixed(2)} ms and ${b.toFixed(2)} ms, ${off.toFixed(1)} % apart`
  yield* Effect.log(`${name}: ${medians}`)
})

const main = Effect.gen(function* () {
  const samples = yield* Config.withDefault(Config.Int("SVC_TIMING_SAMPLES"), 300)
  const app = yield* TestApp
  yield* configure(app, emailConfig)
  const password = "correct horse battery"
  const post = (path: string, body: unknown, headers: Readonly<Record<string, string>>): Ask =>
    request(`${app.url}/v1/${path}`, { body, headers })
  const key = { "x-svc-key": app.publishableKey }
  yield* post("auth/email/signup", { email: "known@example.com", password }, key)
  const logIn = (email: string) => post("auth/email/login", { email, password: "wrong one" }, key)
  const forgot = (email: string) => post("auth/password/forgot", { email }, key)
  const owner = yield* signUp("timed")
  const stranger = yield* signUp("stranger")
  const own = yield* makeProject(owner)
  const foreign = yield* makeProject(stranger)
  const away = yield* guest(foreign.development)
  const none = "0".repeat(26)
  const show = (id: string): Ask => request(`${app.url}/v1/projects/${id}`, owner)
  const secret = { "x-svc-key": own.development.secretKey }
  const ban = (id: string) => post(`admin/players/${id}/ban`, {}, secret)
  const developer = (email: string) =>
    post("developers/login", { email, password: "wrong one" }, {})
  const pairs: ReadonlyArray<readonly [string, Ask, Ask]> = [
    ["login, known and unknown address", logIn("known@example.com"), logIn("no@example.com")],
    [
      "reset link, known and unknown address",
      forgot("known@example.com"),
      forgot("no@example.com")
    ],
    ["developer login", developer("timed@example.com"), developer("no@example.com")],
    ["project, foreign and missing", show(foreign.projectId), show(`prj_${none}`)],
    ["player, foreign and missing", ban(away.id), ban(`pl_${none}`)]
  ]
  for (const [name, one, other] of pairs) yield* compare(name, one, other, samples)
})

const App = TestApp.layerWith({ SVC_SIGNUPS: "open" }).pipe(Layer.provide(TestDatabase.layer))

NodeRuntime.runMain(Effect.provide(main, App))
