/**
 * Nodes of the HTTP side for tests: the real layers, a real Postgres, a real server on a free port.
 * Several nodes may share one database. Time is the test's: with TestClock it stands still.
 */
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Context, DateTime, Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { type HttpRouter, HttpServer } from "effect/http"
import { inject } from "vitest"
import { EnvironmentName } from "#rpc/auth"
import { type DeveloperId, type EnvironmentId, newId } from "#rpc/ids"
import { databaseLayer } from "#sql/database"
import { DeveloperRepository } from "#sql/developers"
import { ThisNode } from "#entities/local-actors"
import { Settings } from "#server/platform/settings/settings"
import { Readiness } from "#server/cluster/readiness"
import { Channels } from "#server/features/channels/service"
import { Configs } from "#server/features/config/service"
import { DeveloperSessions } from "#server/features/developers/sessions"
import type { PlainKeys } from "#server/features/projects/creation"
import { Environments } from "#server/features/projects/environments"
import { HttpServerHandle } from "#server/http/server"
import { CoreLive, Routes, serveHttp } from "#server/app"
import { cloneDatabase } from "#testing/database"

type Env = Readonly<Record<string, string>>

/** The database that the nodes of a test share. */
export class SharedDatabase extends Context.Service<SharedDatabase, Redacted.Redacted>()(
  "test/support/http/stack/SharedDatabase"
) {
  static readonly layer = Layer.effect(
    SharedDatabase,
    Effect.suspend(() => cloneDatabase(Redacted.make(inject("postgres"))))
  )
}

/** Settings of a node; throttles are off unless a test wants them. */
const settingsWith = (env: Env) =>
  Settings.layer.pipe(
    Layer.provide(
      ConfigProvider.layer(
        ConfigProvider.fromEnv({
          env: {
            PORT: "0",
            HOST: "127.0.0.1",
            SVC_BASE_URL: "https://play.example.com",
            SVC_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
            SVC_THROTTLES: "off",
            ...env
          }
        })
      )
    )
  )

const databaseOfNode = Layer.unwrap(
  Effect.map(SharedDatabase, (url) => databaseLayer({ url, connections: 10 }))
)

const platform = Layer.mergeAll(SecureRandom.layerWebCrypto, NodeServices.layer)

/** What a node stands on: every service and repository, without a server. */
export const coreOfNode = (env: Env = {}) =>
  CoreLive.pipe(
    Layer.provideMerge(databaseOfNode),
    Layer.provideMerge(settingsWith(env)),
    Layer.provideMerge(platform)
  )

/** These nodes have no cluster, so no channel lives here. */
const nobodyThere = Layer.succeed(
  Channels,
  Channels.of({
    of: () => {
      throw new Error("No channel lives here")
    }
  })
)

/** A node that listens. */
export const nodeWith = (
  env: Env = {},
  routes: Layer.Layer<never, never, HttpRouter.HttpRouter | Settings> = Layer.empty,
  observability: Layer.Layer<never, never, Settings> = Layer.empty
) =>
  serveHttp(Layer.mergeAll(Routes, routes)).pipe(
    Layer.provide([ThisNode.layer, Readiness.always]),
    Layer.provide(nobodyThere),
    Layer.provideMerge(HttpServerHandle.layer),
    Layer.provideMerge(coreOfNode(env)),
    Layer.provideMerge(Layer.provide(observability, settingsWith(env)))
  )

/** One environment with its keys. */
export interface Tenant extends PlainKeys {
  readonly environmentId: EnvironmentId
}

/** A new project's environments; its owner, if any, is its only member. */
export const makeTenantsOf = Effect.fnUntraced(function* (owner?: DeveloperId) {
  const environments = yield* Environments
  const created = yield* environments.createProject("test", owner)
  const { environments: ids, keys, projectId } = created
  const tenantOf = (name: EnvironmentName): Tenant => ({ environmentId: ids[name], ...keys[name] })
  return { projectId, development: tenantOf("development"), production: tenantOf("production") }
})

/** A new project's environments, without members. */
export const makeTenants = makeTenantsOf()

/** A new developer without a password, signed in; `headers` is what its requests carry. */
export const makeDeveloper = Effect.gen(function* () {
  const rows = yield* DeveloperRepository
  const sessions = yield* DeveloperSessions
  const id = yield* newId.developer
  const email = `${id.toLowerCase()}@example.com`
  const createdAt = yield* DateTime.now
  yield* rows.insert({ id, email, name: "Dev", passwordHash: null, createdAt })
  const { token } = yield* sessions.create(id)
  return { developerId: id, email, token, headers: { authorization: `Bearer ${token}` } }
})

/** Where the node of this context listens. */
export const addressOfNode = Effect.map(HttpServer.HttpServer, ({ address }) =>
  "port" in address ? `http://127.0.0.1:${address.port}` : ""
)

/** Puts a config in force. */
export const configure = Effect.fnUntraced(function* (tenant: Tenant, document: object) {
  const configs = yield* Configs
  const { environmentId } = tenant
  yield* configs.push({
    environmentId,
    document: JSON.parse(JSON.stringify(document)),
    pushedBy: "test"
  })
})
