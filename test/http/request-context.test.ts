/** Context of requests: small, since it is copied for each request, and with all that layers set. */
import { glob, readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { type Context, Effect, Layer, References, Schema, Tracer } from "effect"
import { HttpMiddleware, HttpRouter, HttpServerResponse } from "effect/http"
import { ObservabilityLive } from "#server/telemetry/telemetry"
import { request } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const keysOf = ({ mapUnsafe }: Context.Context<never>) => [...mapUnsafe.keys()]

/** Names of what the layers of the node provide. */
let provided: ReadonlyArray<string> = []

const KeysRoute = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    provided = keysOf(yield* Effect.context<never>())
    const answer = Effect.contextWith((context: Context.Context<never>) =>
      Effect.succeed(HttpServerResponse.jsonUnsafe(keysOf(context)))
    )
    yield* router.add("GET", "/keys", answer)
  })
)

const Observed = Layer.mergeAll(
  ObservabilityLive,
  Layer.succeed(HttpMiddleware.SpanNameGenerator, () => "span"),
  Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)
)

const Node = nodeWith({}, KeysRoute, Observed).pipe(Layer.provideMerge(SharedDatabase.layer))

const root = fileURLToPath(new URL("../../", import.meta.url))
const sources = ["{entities,rpc,sql,src}/**/*.ts", "node_modules/effect/src/**/*.ts"]

/** The names of all references in the sources of the service and of Effect. */
const referenceNames = Effect.promise(async () => {
  const names = new Set<string>([Tracer.Tracer.key, References.TracerEnabled.key])
  for (const pattern of sources) {
    for await (const file of glob(pattern, { cwd: root })) {
      const text = await readFile(`${root}${file}`, "utf8")
      for (const [, name] of text.matchAll(/Reference\b[^"()]*\(\s*"([^"]+)"/g))
        names.add(name ?? "")
    }
  }
  return names
})

const decodeKeys = Schema.decodeUnknownSync(Schema.Array(Schema.String))

layer(Node)("the context of a request", (it) => {
  it.effect("passes a request every reference that a layer has set, and no service", () =>
    Effect.gen(function* () {
      const names = yield* referenceNames
      const kept = decodeKeys((yield* request(`${yield* addressOfNode}/keys`)).body)
      const set = provided.filter((key) => names.has(key) && !key.includes("Layer/"))
      assert.includeMembers([...kept], set)
      assert.include(set, "sql/connection-shares/ConnectionShares")
      assert.include(set, References.MinimumLogLevel.key)
      assert.include(provided, "sql/saves/SaveRepository")
      assert.deepStrictEqual(
        kept.filter((key) => /^(?:entities|rpc|server|sql)\//.test(key) && !names.has(key)),
        []
      )
      assert.isBelow(kept.length, 30)
    })
  )
})
