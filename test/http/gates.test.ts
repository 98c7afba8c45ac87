/** Gates of features, share tools and providers: every door that is closed says so before it reads the request. */
import { readFileSync } from "node:fs"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { Api } from "#rpc/api"
import {
  FeatureGate,
  OptionalPlayerToken,
  PlayerToken,
  PublishableKeyInQuery,
  RequiredFeature,
  SecretKey
} from "#rpc/auth"
import { FunctionsGate, RequiresFunctions } from "#rpc/functions/gate"
import { ProviderGate } from "#rpc/oauth/sign-in"
import { ShareLinksGate, ShareStatsGate, ShareTrackingGate } from "#rpc/share/gates"
import { InAppBrowserGate } from "#rpc/transfer"
import { TestApp } from "#testing/app"
import { at, configure, request, type TestResponse } from "#testing/players"
import { makeTenantFixtures } from "../support/operator-harness.ts"
import { SecurityAppLive } from "../support/security/security-harness.ts"

const openapi: { readonly paths: Readonly<Record<string, Record<string, unknown>>> } = JSON.parse(
  readFileSync(new URL("../../rpc/openapi.json", import.meta.url), "utf8")
)

interface GatedEndpoint {
  readonly name: string
  readonly endpoint: HttpApiEndpoint.Top
  /** Code of the closed gate. */
  readonly code: string
}

/** Gates that need no annotation, with the code that each answers. */
const gates = [
  [ProviderGate, "provider_disabled"],
  [ShareLinksGate, "share_links_disabled"],
  [ShareTrackingGate, "share_tracking_disabled"],
  [ShareStatsGate, "share_tracking_disabled"],
  [InAppBrowserGate, "share_inAppBrowser_disabled"]
] as const

const isBehind = ({ middlewares }: HttpApiEndpoint.Top, { key }: { readonly key: string }) =>
  Array.from(middlewares).some((it) => it.key === key)

/** The code of the gate before an endpoint; undefined if it has none. */
const gateOf = (endpoint: HttpApiEndpoint.Top): string | undefined => {
  const { annotations } = endpoint
  const hasFeature = Context.get(annotations, RequiredFeature) !== undefined
  if (hasFeature && isBehind(endpoint, FeatureGate)) return "feature_disabled"
  if (Context.get(annotations, RequiresFunctions) && isBehind(endpoint, FunctionsGate)) {
    return "feature_disabled"
  }
  return gates.find(([gate]) => isBehind(endpoint, gate))?.[1]
}

const all: Array<Omit<GatedEndpoint, "code"> & { readonly code: string | undefined }> = []
HttpApi.reflect(Api, {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint }) => {
    all.push({ name: `${endpoint.method} ${endpoint.path}`, endpoint, code: gateOf(endpoint) })
  }
})

/** Reads of the dashboard, which can read while a tool is off. */
const open = new Set(["GET /v1/projects/:projectId/environments/:env/share/stats"])

const gated = all.filter(
  (each): each is GatedEndpoint => each.code !== undefined && !open.has(each.name)
)

/** Values that no schema of a path, query or body accepts. */
const broken = {
  params: (path: string) => path.replace(/:([A-Za-z0-9]+)/g, "%21"),
  query: "limit=x&cursor=%21&from=x&redirectUrl=x&challenge=x",
  body: "{"
}

const outcomeOf = ({ body, status }: TestResponse): string =>
  [status, at(body, "error", "code")].filter((it) => it !== undefined).join(" ")

/** Path parameters that decide the caller or the gate; the others may be broken. */
const withCaller = (path: string, projectId: string): string =>
  path
    .replace(":projectId", projectId)
    .replace(":env", "development")
    .replace(":provider", "google")

const headersOf = Effect.fnUntraced(function* (
  fixtures: Effect.Success<ReturnType<typeof makeTenantFixtures>>
) {
  const { developer, development, player } = fixtures
  const publishable = { "x-svc-key": development.publishableKey }
  return (endpoint: HttpApiEndpoint.Top): Readonly<Record<string, string>> => {
    if (isBehind(endpoint, PlayerToken) || isBehind(endpoint, OptionalPlayerToken)) {
      return { ...publishable, authorization: `Bearer ${player.accessToken}` }
    }
    if (isBehind(endpoint, SecretKey)) return { "x-svc-key": development.secretKey }
    return endpoint.path.startsWith("/v1/projects/") ? developer.headers : publishable
  }
})

/** Operations that learn what they need only from the request: a code, a card's app, an image's label. */
const gatedLater = new Set([
  "POST /v1/auth/oauth/exchange",
  "GET /v1/share/tags",
  "GET /v1/admin/share/tags",
  "GET /v1/projects/:projectId/environments/:env/share/tags",
  "GET /v1/share/images/:label/card.png",
  "GET /v1/share/images/:label/:shareId.png"
])

/** Operations of the OpenAPI document that may answer a code of a closed gate. */
const documented = Object.entries<Record<string, unknown>>(openapi.paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, operation]) =>
    /`(?:feature|provider|share_\w+)_disabled`/.test(JSON.stringify(operation))
      ? [`${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`]
      : []
  )
)

describe("gates of the API", () => {
  it("stand before each endpoint that documents the code of a closed gate", () => {
    const ungated = new Set(all.flatMap(({ code, name }) => (code === undefined ? [name] : [])))
    const readable = all.flatMap(({ endpoint, name }) =>
      isBehind(endpoint, FeatureGate) || isBehind(endpoint, FunctionsGate) ? [name] : []
    )
    const missing = documented.filter((name) => ungated.has(name) && !gatedLater.has(name))
    // What is behind a gate without an annotation reads settings: the dashboard can while it is off.
    assert.deepStrictEqual(
      missing.filter((name) => !readable.includes(name)),
      []
    )
    for (const code of ["feature_disabled", ...gates.map(([, it]) => it)]) {
      assert.isNotEmpty(gated.filter((each) => each.code === code))
    }
  })
})

layer(SecurityAppLive(), { timeout: "120 seconds", excludeTestServices: true })("gates", (it) => {
  it.effect("answer before the path, query and body of any endpoint are read", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const fixtures = yield* makeTenantFixtures("gates")
      const { development, projectId } = fixtures
      yield* configure(development, {})
      const headers = yield* headersOf(fixtures)
      const wrong: Array<string> = []
      for (const { code, endpoint, name } of gated) {
        const { method } = endpoint
        const key = isBehind(endpoint, PublishableKeyInQuery)
          ? `key=${development.publishableKey}&`
          : ""
        const path = broken.params(withCaller(endpoint.path, projectId))
        const answer = yield* request(`${url}${path}?${key}${broken.query}`, {
          method,
          headers: headers(endpoint),
          ...(method === "GET" ? {} : { body: broken.body })
        })
        const got = String(at(answer.body, "error", "code"))
        if (got !== code) wrong.push(`${name}: expected ${code}, got ${outcomeOf(answer)}`)
      }
      assert.deepStrictEqual(wrong, [])
    })
  )
})
