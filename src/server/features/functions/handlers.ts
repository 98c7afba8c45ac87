/** Functions over HTTP, for secret keys and for developers of the project. */
import { Effect, Layer } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { http } from "#rpc/limits"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { firstPageCursor, pageOf } from "#server/platform/pages"
import { withRetryAfter } from "#server/platform/throttle-guard"
import { makeDatabases } from "./databases.ts"
import { makeDeadLetters } from "./dead-letters.ts"
import { FunctionsDeployments } from "./deployments.ts"
import { makeEntries } from "./entries.ts"
import { makeLogResponse } from "./logs.ts"
import { Functions } from "./service.ts"
import { makeRequireStore } from "./stores.ts"

const makeSettings = Effect.gen(function* () {
  const functions = yield* Functions
  return {
    status: () => Effect.flatMap(CurrentEnvironment, functions.status),
    enable: ({ payload }: RequestOf<"functions", "enable">) =>
      Effect.flatMap(CurrentEnvironment, (environment) => functions.enable(environment, payload)),
    disable: () => Effect.flatMap(CurrentEnvironment, functions.disable),
    limits: ({ payload }: RequestOf<"functions", "limits">) =>
      Effect.flatMap(CurrentEnvironment, (environment) =>
        functions.setLimits(environment, payload)
      ),
    remove: Effect.fnUntraced(function* ({ query }: RequestOf<"functions", "remove">) {
      const purged = query.purge === "true"
      yield* functions.remove(yield* CurrentEnvironment, purged)
      return { deleted: true as const, purged }
    }),
    secrets: () =>
      Effect.map(Effect.flatMap(CurrentEnvironment, functions.secrets), (secrets) => ({ secrets })),
    putSecret: Effect.fnUntraced(function* ({
      params: { name },
      payload
    }: RequestOf<"functions", "putSecret">) {
      yield* functions.putSecret(yield* CurrentEnvironment, name, payload.value)
      return { name }
    }),
    deleteSecret: Effect.fnUntraced(function* ({ params }: RequestOf<"functions", "deleteSecret">) {
      yield* functions.deleteSecret(yield* CurrentEnvironment, params.name)
      return { name: params.name }
    })
  }
})

const makeCode = Effect.gen(function* () {
  const deployments = yield* FunctionsDeployments
  return {
    deploy: Effect.fnUntraced(function* ({ payload }: RequestOf<"functions", "deploy">) {
      return yield* deployments.deploy(yield* CurrentEnvironment, payload)
    }),
    activate: Effect.fnUntraced(function* ({ params }: RequestOf<"functions", "activate">) {
      return yield* deployments.activate(yield* CurrentEnvironment, params.version)
    }),
    deployments: Effect.fnUntraced(function* ({
      query: { cursor = firstPageCursor, limit = http.pageDefault }
    }: RequestOf<"functions", "deployments">) {
      const environment = yield* CurrentEnvironment
      const found = yield* deployments.page(environment, { before: cursor, limit: limit + 1 })
      const { nextCursor, rows } = pageOf(found, limit, ({ version }) => `${version}`)
      return { deployments: rows, nextCursor }
    })
  }
})

const makeData = Effect.gen(function* () {
  const requireStore = yield* makeRequireStore
  const databases = yield* makeDatabases(requireStore)
  const logs = yield* makeLogResponse
  return {
    ...(yield* makeEntries(requireStore)),
    query: Effect.fnUntraced(function* ({ params, payload }: RequestOf<"functions", "query">) {
      return yield* databases.query(yield* CurrentEnvironment, params.binding, payload)
    }),
    migrate: Effect.fnUntraced(function* ({ params, payload }: RequestOf<"functions", "migrate">) {
      return yield* databases.migrate(yield* CurrentEnvironment, params.binding, payload)
    }),
    logs: Effect.fnUntraced(function* ({ query }: RequestOf<"functions", "logs">) {
      const { environmentId } = yield* CurrentEnvironment
      return yield* withRetryAfter(logs(environmentId, query))
    })
  }
})

const makeHandlers = Effect.gen(function* () {
  return {
    ...(yield* makeSettings),
    ...(yield* makeCode),
    ...(yield* makeData),
    ...(yield* makeDeadLetters)
  }
})

/** The groups `functions` and `projectFunctions`. */
export const FunctionsHttp = mounted(makeHandlers, (all) => [
  apiGroup(Api, "functions", (handlers) => handlers.handleAll(all)),
  apiGroup(Api, "projectFunctions", (handlers) => handlers.handleAll(all))
]).pipe(Layer.provide([Functions.layer, FunctionsDeployments.layer]))
