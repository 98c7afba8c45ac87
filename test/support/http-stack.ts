/**
 * Nodes that serve HTTP without a cluster, for tests: the production layers, a real Postgres and a real
 * server on a free port. Several nodes can share one database. Nodes use the clock of the test.
 */
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Context, DateTime, Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { type HttpRouter, HttpServer } from "effect/http"
import { inject } from "vitest"
import { EnvironmentName } from "#rpc/auth"
import { FeatureUnavailable } from "#rpc/errors/codes"
import { type DeveloperId, type EnvironmentId, newId } from "#rpc/ids"
import { DeveloperRepository } from "#sql/developers/repository"
import { ThisNode } from "#entities/local-actors"
import { sharedPoolLayer } from "#server/platform/database-pool"
import { Invalidation } from "#server/platform/invalidation"
import { Settings } from "#server/platform/settings/settings"
import { Readiness } from "#server/cluster/readiness"
import { Channels } from "#server/features/channels/service"
import { Configs } from "#server/features/config/service"
import { FunctionsChanges } from "#server/features/functions/changes"
import { DeveloperSessions } from "#server/features/developers/sessions"
import type { PlainKeys } from "#server/features/projects/creation"
import { Environments } from "#server/features/projects/environments"
import { HttpServerHandle } from "#server/http/server"
import { FunctionRoutes } from "#server/features/functions/runners/routes"
import { FunctionControlPlaneLive } from "#server/features/functions/layers"
import { CoreLive, Routes, serveHttp } from "#server/app"
import { cloneDatabase } from "#testing/database"
import { FakeFunctionsRuntime, FakeRuntime } from "./function-runtime.ts"
import { masterKeyOf } from "./master-keys.ts"

type Env = Readonly<Record<string, string>>

/** The database that the nodes of a test share. */
export class SharedDatabase extends Context.Service<SharedDatabase, Redacted.Redacted>()(
  "test/support/http-stack/SharedDatabase"
) {
  static readonly layer = Layer.effect(
    SharedDatabase,
    Effect.suspend(() => cloneDatabase(Redacted.make(inject("postgres"))))
  )
}

/** Settings of a node. Rate limits are off by default. */
const settingsWith = (env: Env) =>
  Settings.layer.pipe(
    Layer.provide(
      ConfigProvider.layer(
        ConfigProvider.fromEnv({
          env: {
            PORT: "0",
            HOST: "127.0.0.1",
            SVC_BASE_URL: "https://play.example.com",
            SVC_ALLOW_PUBLIC_DEVELOPMENT: "on",
            SVC_MASTER_KEY: masterKeyOf(7),
            SVC_THROTTLES: "off",
            ...env
          }
        })
      )
    )
  )

const databaseOfNode = Layer.unwrap(
  Effect.map(SharedDatabase, (url) => sharedPoolLayer({ url, connections: 10 }))
)

const platform = Layer.mergeAll(SecureRandom.layerWebCrypto, NodeServices.layer)

/** All services and repositories of a node, without its server. */
export const coreOfNode = (env: Env = {}) =>
  CoreLive.pipe(
    Layer.provideMerge(databaseOfNode),
    Layer.provideMerge(settingsWith(env)),
    Layer.provideMerge(platform)
  )

/** These nodes have no cluster, so they have no channels. */
const noChannels = Layer.succeed(
  Channels,
  Channels.of({
    of: () => {
      throw new Error("Nodes without a cluster have no channels")
    }
  })
)

/** No function runs on these nodes. */
const noRoutes = Layer.mock(FunctionRoutes)({
  serve: () => new FeatureUnavailable({ details: { features: ["functions"] } }),
  upgrade: () => new FeatureUnavailable({ details: { features: ["functions"] } })
})

/** What functions need, with a runtime that only records its calls. */
const fakeFunctions = FunctionsChanges.layer.pipe(
  Layer.provideMerge(FakeFunctionsRuntime),
  Layer.provideMerge(FakeRuntime.layer),
  Layer.provideMerge(noRoutes),
  Layer.provideMerge(FunctionControlPlaneLive)
)

/** A node with its HTTP server. */
export const nodeWith = (
  env: Env = {},
  routes: Layer.Layer<never, never, HttpRouter.HttpRouter | Settings> = Layer.empty,
  observability: Layer.Layer<never, never, Settings> = Layer.empty
) =>
  serveHttp(Layer.mergeAll(Routes, routes)).pipe(
    Layer.provide([ThisNode.layer, Readiness.always]),
    Layer.provideMerge(fakeFunctions),
    Layer.provide(noChannels),
    Layer.provideMerge(HttpServerHandle.layer),
    Layer.provideMerge(coreOfNode(env)),
    Layer.provideMerge(Layer.provide(observability, settingsWith(env)))
  )

/** Builds a second node, which shares nothing with the first but the database; ends with the scope. */
export const buildAnother = <A, E, R>(node: Layer.Layer<A, E, R>) =>
  Effect.gen(function* () {
    return yield* Layer.buildWithMemoMap(node, yield* Layer.makeMemoMap, yield* Effect.scope)
  })

/** An environment with its keys. */
export interface Tenant extends PlainKeys {
  readonly environmentId: EnvironmentId
  readonly name: EnvironmentName
}

/** Creates a project; returns its environments. The owner, if any, is the only member. */
export const makeTenantsOf = Effect.fnUntraced(function* (owner?: DeveloperId) {
  const environments = yield* Environments
  const created = yield* environments.createProject("test", owner)
  const { environments: ids, keys, projectId } = created
  const tenantOf = (name: EnvironmentName): Tenant => ({
    environmentId: ids[name],
    name,
    ...keys[name]
  })
  return { projectId, development: tenantOf("development"), production: tenantOf("production") }
})

/** Creates a project without members; returns its environments. */
export const makeTenants = makeTenantsOf()

/** Creates a developer without a password, and a session; `headers` authenticates its requests. */
export const makeDeveloper = Effect.gen(function* () {
  const developers = yield* DeveloperRepository
  const sessions = yield* DeveloperSessions
  const id = yield* newId.developer
  const email = `${id.toLowerCase()}@example.com`
  const createdAt = yield* DateTime.now
  yield* developers.insert({ id, email, name: "Dev", passwordHash: null, createdAt })
  const { token } = yield* sessions.create(id)
  return { developerId: id, email, token, headers: { authorization: `Bearer ${token}` } }
})

/** The base URL of the node in this context. */
export const addressOfNode = Effect.map(HttpServer.HttpServer, ({ address }) =>
  "port" in address ? `http://127.0.0.1:${address.port}` : ""
)

/** Pushes a config. */
export const configure = Effect.fnUntraced(function* (tenant: Tenant, document: object) {
  const configs = yield* Configs
  const { awaitAcknowledgements } = yield* Invalidation
  const { environmentId, name } = tenant
  yield* configs.push({
    environmentId,
    environment: name,
    document: JSON.parse(JSON.stringify(document)),
    pushedBy: "test"
  })
  // Else a node may forget a config that it has just read.
  yield* awaitAcknowledgements
})
