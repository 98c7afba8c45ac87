/**
 * `GET /metrics`: the Prometheus format, its access control, the bounded number of labels, and that each
 * metric of the dashboard and the documentation exists.
 */
import { readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { MetricsRoute } from "#server/telemetry/metrics"
import { TestApp } from "#testing/app"
import { configure, guest, newPlayer, request } from "#testing/players"
import { freePort } from "#testing/runners"
import { connectSocket } from "#testing/socket-client"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { DatabaseLive } from "../support/service.ts"
import { masterKeyOf } from "../support/master-keys.ts"

/** One runner of a cluster, so that metrics of runner links exist. */
const AppLive = Layer.unwrap(
  Effect.map(freePort, (port) =>
    TestApp.layerWith({ SVC_RUNNER_HOST: "127.0.0.1", SVC_RUNNER_PORT: String(port) })
  )
).pipe(Layer.provide(DatabaseLive))

const modes = {
  features: { multiplayer: true },
  multiplayer: { modes: [{ key: "duel", minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 30 }] }
}

/** The samples of an exposition by `name{labels}`, and the types of its described metrics. */
const parse = (text: string) => {
  const samples = new Map<string, number>()
  const described = new Map<string, string>()
  for (const line of text.split("\n")) {
    const [, help] = /^# HELP (\S+) \S/.exec(line) ?? []
    const [, name, type] = /^# TYPE (\S+) (\w+)$/.exec(line) ?? []
    if (help !== undefined) described.set(help, "")
    if (name !== undefined && type !== undefined && described.has(name)) described.set(name, type)
    if (line.startsWith("#") || line === "") continue
    const at = line.lastIndexOf(" ")
    samples.set(line.slice(0, at), Number(line.slice(at + 1)))
  }
  return { samples, described }
}

const scrape = Effect.gen(function* () {
  const { url } = yield* TestApp
  const { body, headers, status } = yield* request(`${url}/metrics`)
  assert.strictEqual(status, 200)
  assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/)
  return { text: String(body), ...parse(String(body)) }
})

const sample = (name: string) => Effect.map(scrape, ({ samples }) => samples.get(name) ?? 0)

const until = (reached: Effect.Effect<boolean, never, TestApp>, what: string) =>
  Effect.flatMap(TestApp, (app) =>
    app.eventually(Effect.provideService(reached, TestApp, app), what)
  )

/** The metric of a sample, without the suffixes of histograms. */
const metricOf = (key: string) => key.replace(/\{.*/, "").replace(/_(?:bucket|sum|count)$/, "")

layer(AppLive)("metrics", (it) => {
  it.effect("counts sockets, frames, messages and the reasons of closed sockets", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const before = (yield* scrape).samples
      const ada = yield* newPlayer(app)
      yield* ada.socket.request({ t: "ping" })
      yield* ada.socket.request({ t: "nonsense" })
      const { samples: after } = yield* scrape
      const increase = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0)
      assert.strictEqual(increase(`svc_sockets{kind="player"}`), 1)
      assert.strictEqual(increase("svc_sockets_accepted_total"), 1)
      assert.strictEqual(increase("svc_sockets_admitted_total"), 1)
      assert.strictEqual(increase("svc_frames_received_total"), 3)
      assert.strictEqual(increase("svc_frames_invalid_total"), 1)
      // The welcome and two replies.
      assert.strictEqual(increase("svc_messages_sent_total"), 3)
      assert.isAtMost(increase("svc_socket_writes_total"), 3)
      assert.isAbove(increase("svc_sent_bytes_total"), 100)

      const unauthenticated = yield* connectSocket(app.socketUrl)
      yield* unauthenticated.send({ t: "ping" })
      assert.strictEqual((yield* unauthenticated.closed).code, 4001)
      yield* ada.socket.close()
      const closed = (reason: string) => sample(`svc_sockets_closed_total{reason="${reason}"}`)
      assert.strictEqual(yield* closed("unauthorized"), 1)
      yield* until(
        Effect.map(closed("client"), (count) => count === 1),
        "the socket is counted"
      )
      assert.strictEqual(yield* sample(`svc_sockets{kind="player"}`), 0)
    })
  )

  it.effect("counts rooms, matches and snapshots", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      yield* Effect.forkChild(ada.socket.request({ t: "quickMatch", mode: "duel" }))
      yield* until(
        Effect.map(sample("svc_queue_tickets"), (tickets) => tickets === 1),
        "a ticket waits"
      )
      yield* bob.socket.request({ t: "quickMatch", mode: "duel" })
      const { samples } = yield* scrape
      assert.strictEqual(samples.get("svc_rooms"), 1)
      assert.strictEqual(samples.get("svc_room_members"), 2)
      assert.strictEqual(samples.get("svc_matches_total"), 1)
      assert.strictEqual(samples.get("svc_match_wait_seconds_count"), 2)
      assert.strictEqual(samples.get(`svc_cluster_entities{type="Room"}`), 1)
      assert.isAbove(samples.get("svc_player_sessions") ?? 0, 1)
      const written = sample(`svc_snapshots_written_total{entity="room"}`)
      yield* until(
        Effect.andThen(
          TestClock.adjust("1 second"),
          Effect.map(written, (count) => count > 0)
        ),
        "a snapshot is written"
      )
      for (const { socket } of [ada, bob]) yield* socket.request({ t: "leave" })
      assert.strictEqual(yield* sample("svc_rooms"), 0)
    })
  )

  it.effect("counts requests by route, never by path", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* guest(app)
      for (const path of ["/nowhere/1", "/nowhere/2", "/v1/rooms/rm_1/x", "/.env"]) {
        yield* request(`${app.url}${path}`)
      }
      yield* request(`${app.url}/v1/saves/slot-1`, { headers: { "x-svc-key": app.secretKey } })
      yield* request(`${app.url}/v1/saves/slot-2`, { headers: { "x-svc-key": app.secretKey } })
      const { samples, text } = yield* scrape
      const count = (method: string, route: string, status: string) =>
        samples.get(
          `svc_http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`
        )
      assert.isAbove(count("POST", "/v1/auth/guest", "2xx") ?? 0, 0)
      assert.strictEqual(count("GET", "none", "4xx"), 4)
      for (const label of ["nowhere", ".env", "slot-1", "rm_1"]) assert.notInclude(text, label)
      assert.isAbove(samples.get("svc_database_statement_duration_seconds_count") ?? 0, 0)
    })
  )

  it.effect("describes metrics under Prometheus names, without an id or address", () =>
    Effect.gen(function* () {
      const { described, samples, text } = yield* scrape
      for (const key of samples.keys()) {
        const name = metricOf(key)
        const type = described.get(name) ?? described.get(key.replace(/\{.*/, ""))
        assert.match(name, /^(?:svc|process)_[a-z_]+$/)
        assert.isDefined(type, `${name} has a HELP and a TYPE`)
        assert.strictEqual(name.endsWith("_total"), type === "counter", name)
      }
      // No id of any kind, and no IP address.
      assert.notMatch(text, /_[0-9A-HJKMNP-TV-Z]{26}\b|\d+\.\d+\.\d+\.\d+/)
    })
  )

  it.effect("exports each metric that the dashboard and the documentation use", () =>
    Effect.gen(function* () {
      const { samples } = yield* scrape
      const names = new Set(Array.from(samples.keys(), (key) => key.replace(/\{.*/, "")))
      const metrics = new Set(Array.from(samples.keys(), metricOf))
      for (const file of ["../../deploy/grafana.json", "../../docs/operations/observability.md"]) {
        const text = readFileSync(new URL(file, import.meta.url), "utf8")
        // `#svc_code` and the like are parameters of redirect URLs.
        const used = new Set(text.match(/(?<!#)\b(?:svc|process)_[a-z]+_?[a-z_]*\b/g) ?? [])
        assert.isAbove(used.size, 10)
        for (const name of used) {
          assert.isTrue(names.has(name) || metrics.has(name), `${name} of ${file}`)
        }
      }
    })
  )
})

const token = "a-token-for-prometheus"

const production = {
  NODE_ENV: "production",
  SVC_MASTER_KEY: masterKeyOf(7)
}

const statusOf = (authorization?: string) =>
  Effect.gen(function* () {
    const url = yield* addressOfNode
    const headers = authorization === undefined ? {} : { authorization }
    const { body, status } = yield* request(`${url}/metrics`, { headers })
    return [status, String(body).includes("# TYPE")]
  })

layer(
  nodeWith({ ...production, SVC_METRICS_TOKEN: token }, MetricsRoute).pipe(
    Layer.provideMerge(SharedDatabase.layer)
  )
)("metrics with a token", (it) => {
  it.effect("serves metrics only to requests with the configured token", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* statusOf(`Bearer ${token}`), [200, true])
      for (const wrong of [undefined, "", "Bearer ", `Bearer ${token}x`, token, `Basic ${token}`]) {
        assert.deepStrictEqual(yield* statusOf(wrong), [401, false], wrong)
      }
    })
  )
})

layer(nodeWith(production, MetricsRoute).pipe(Layer.provideMerge(SharedDatabase.layer)))(
  "metrics without a token in production",
  (it) => {
    it.effect("answers 404 for metrics without a configured token in production", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* statusOf(), [404, false])
        assert.deepStrictEqual(yield* statusOf("Bearer "), [404, false])
      })
    )
  }
)
