/** Traces exported over OTLP/HTTP, from the request or frame to the SQL statement. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Predicate } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, newPlayer, request } from "#testing/players"
import { startServer } from "../support/local-server.ts"
import { DatabaseLive } from "../support/service.ts"

interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly attributes: Readonly<Record<string, string>>
}

const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const attributesOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    list(value).map((entry) => {
      const [text] = Object.values(Object(at(entry, "value")))
      return [String(at(entry, "key")), String(text)]
    })
  )

const spansOf = (text: string): ReadonlyArray<Span> =>
  list(at(JSON.parse(text), "resourceSpans")).flatMap((resource) =>
    list(at(resource, "scopeSpans")).flatMap((scope) =>
      list(at(scope, "spans")).map((span) => {
        const parent = at(span, "parentSpanId")
        return {
          name: String(at(span, "name")),
          traceId: String(at(span, "traceId")),
          spanId: String(at(span, "spanId")),
          parentSpanId: Predicate.isString(parent) && parent !== "" ? parent : undefined,
          attributes: attributesOf(at(span, "attributes"))
        }
      })
    )
  )

/** A collector on a free port that stores the traces it receives. */
const makeCollector = Effect.gen(function* () {
  const bodies: Array<string> = []
  const paths: Array<string> = []
  const { port } = yield* startServer((request, response) => {
    const chunks: Array<Buffer> = []
    paths.push(`${request.url} for ${request.headers["x-team"]}`)
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      bodies.push(Buffer.concat(chunks).toString("utf8"))
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  return { url: `http://127.0.0.1:${port}`, bodies, paths }
})

/** Runs an effect against an app, stops the app and returns the exported traces. */
const traced = Effect.fnUntraced(function* <A>(
  env: Readonly<Record<string, string>>,
  play: Effect.Effect<A, Error, TestApp>
) {
  const { bodies, paths, url } = yield* makeCollector
  const app = TestApp.layerWith({
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_HEADERS: "x-team=game",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    ...env
  })
  const played = yield* Effect.provide(play, app.pipe(Layer.provide(DatabaseLive), Layer.fresh))
  return { played, spans: bodies.flatMap(spansOf), text: bodies.join("\n"), paths }
}, Effect.scoped)

const modes = {
  features: { multiplayer: true },
  multiplayer: { modes: [{ key: "duel", maxPlayers: 2 }] }
}

const traceId = "0af7651916cd43dd8448eb211c80319c"
const parentId = "b7ad6b7169203331"

/** The ancestors of a span, nearest first. */
const ancestors = (spans: ReadonlyArray<Span>, { parentSpanId }: Span): ReadonlyArray<Span> => {
  const parent = spans.find(({ spanId }) => spanId === parentSpanId)
  return parent === undefined ? [] : [parent, ...ancestors(spans, parent)]
}

const statement = (spans: ReadonlyArray<Span>, text: string): Span => {
  const found = spans.find(({ attributes }) => attributes["db.query.text"]?.includes(text))
  if (found === undefined) throw new Error(`no statement with ${text}`)
  return found
}

const rename = Effect.gen(function* () {
  const app = yield* TestApp
  const player = yield* guest(app, "Ada Lovelace")
  const answer = yield* request(`${app.url}/v1/players/me?token=${player.accessToken}`, {
    headers: {
      "x-svc-key": app.publishableKey,
      authorization: `Bearer ${player.accessToken}`,
      traceparent: `00-${traceId}-${parentId}-01`
    },
    method: "PATCH",
    body: { displayName: "Grace Hopper" }
  })
  assert.strictEqual(answer.status, 200)
  for (const path of ["healthz", "readyz", "metrics"]) yield* request(`${app.url}/${path}`)
  return { app, player }
})

describe("traces", () => {
  it.live("traces the statements of a request, without parameters and secrets", () =>
    Effect.gen(function* () {
      const { paths, played, spans, text } = yield* traced({}, rename)
      const update = statement(spans, "update players")
      const [endpoint] = ancestors(spans, update)
      assert.strictEqual(endpoint?.name, "PATCH /v1/players/me")
      assert.strictEqual(endpoint?.attributes["http.route"], "/v1/players/me")
      assert.strictEqual(endpoint?.traceId, traceId, "continues the trace of the caller")
      assert.strictEqual(endpoint?.parentSpanId, parentId)
      assert.strictEqual(update.attributes["db.system.name"], "postgresql")
      assert.strictEqual(update.attributes["server.address"], "127.0.0.1")
      assert.match(update.attributes["db.namespace"] ?? "", /^svc_/)
      assert.match(text, /"service\.instance\.id","value":\{"stringValue":"[\da-f-]{36}"/)

      const signUp = ancestors(spans, statement(spans, "insert into players"))
      assert.deepStrictEqual(
        signUp.map(({ name }) => name),
        ["Sessions.createGuest", "POST /v1/auth/guest"]
      )
      const { app, player } = played
      const secrets = ["Ada Lovelace", "Grace Hopper", player.accessToken, player.refreshToken]
      for (const secret of secrets.concat(app.publishableKey, app.secretKey)) {
        assert.notInclude(text, secret)
      }
      assert.include(paths, "/v1/traces for game")
    })
  )

  it.live("traces the room and the statements of a frame", () =>
    Effect.gen(function* () {
      const { spans } = yield* traced(
        {},
        Effect.gen(function* () {
          const app = yield* TestApp
          yield* configure(app, modes)
          const ada = yield* newPlayer(app)
          const created = yield* ada.socket.request({ t: "create", mode: "duel" })
          assert.strictEqual(at(created, "ok"), true)
        }).pipe(Effect.scoped)
      )
      const names = ancestors(spans, statement(spans, "insert into rooms")).map(({ name }) => name)
      assert.deepStrictEqual(names, ["Room.Open", "Room.client.Open", "frame create"])
      assert.isTrue(spans.some(({ name }) => name === "frame auth"))
    })
  )

  it.live("starts traces at requests only, never at background work of the service", () =>
    Effect.gen(function* () {
      const { spans } = yield* traced({}, rename)
      const roots = spans.filter((span) => ancestors(spans, span).length === 0)
      for (const { name } of roots) assert.match(name, /^(?:POST|PATCH) \/v1\//)
    })
  )

  it.live("samples traces by ratio, also those that a caller started", () =>
    Effect.gen(function* () {
      const { text } = yield* traced({ OTEL_TRACES_SAMPLER_ARG: "0" }, rename)
      assert.strictEqual(text, "")
    })
  )
})
