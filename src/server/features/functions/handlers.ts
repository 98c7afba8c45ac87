/** Functions over HTTP, for secret keys and for developers of the project. */
import { Effect, Layer } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import type { NewFunctionsDeployment } from "#rpc/functions/deployment"
import type { ChangedLimits, Migrations, Query } from "#rpc/functions/responses"
import { http } from "#rpc/limits"
import { apiGroup } from "#server/platform/api-group"
import { firstPageCursor, pageOf } from "#server/platform/pages"
import { withRetryAfter } from "#server/platform/throttle-guard"
import { makeDatabases } from "./databases.ts"
import { makeDeadLetters } from "./dead-letters.ts"
import { FunctionsDeployments } from "./deployments.ts"
import { makeEntries } from "./entries.ts"
import { type LogQuery, makeLogResponse } from "./logs.ts"
import { Functions } from "./service.ts"
import { makeRequireStore } from "./stores.ts"

interface ByName {
  readonly params: { readonly name: string }
}

interface ByBinding {
  readonly params: { readonly binding: string }
}

const makeSettings = Effect.gen(function* () {
  const functions = yield* Functions
  return {
    status: () => Effect.flatMap(CurrentEnvironment, functions.status),
    enable: ({ payload }: { readonly payload: ChangedLimits }) =>
      Effect.flatMap(CurrentEnvironment, (environment) => functions.enable(environment, payload)),
    disable: () => Effect.flatMap(CurrentEnvironment, functions.disable),
    limits: ({ payload }: { readonly payload: ChangedLimits }) =>
      Effect.flatMap(CurrentEnvironment, (environment) =>
        functions.setLimits(environment, payload)
      ),
    remove: Effect.fnUntraced(function* ({
      query
    }: {
      readonly query: { readonly purge?: "true" | "false" }
    }) {
      const purged = query.purge === "true"
      yield* functions.remove(yield* CurrentEnvironment, purged)
      return { deleted: true as const, purged }
    }),
    secrets: () =>
      Effect.map(Effect.flatMap(CurrentEnvironment, functions.secrets), (secrets) => ({ secrets })),
    putSecret: Effect.fnUntraced(function* ({
      params: { name },
      payload
    }: ByName & { readonly payload: { readonly value: string } }) {
      yield* functions.putSecret(yield* CurrentEnvironment, name, payload.value)
      return { name }
    }),
    deleteSecret: Effect.fnUntraced(function* ({ params: { name } }: ByName) {
      yield* functions.deleteSecret(yield* CurrentEnvironment, name)
      return { name }
    })
  }
})

const makeCode = Effect.gen(function* () {
  const deployments = yield* FunctionsDeployments
  return {
    deploy: Effect.fnUntraced(function* ({
      payload
    }: {
      readonly payload: NewFunctionsDeployment
    }) {
      return yield* deployments.deploy(yield* CurrentEnvironment, payload)
    }),
    activate: Effect.fnUntraced(function* ({
      params: { version }
    }: {
      readonly params: { readonly version: string }
    }) {
      return yield* deployments.activate(yield* CurrentEnvironment, version)
    }),
    deployments: Effect.fnUntraced(function* ({
      query: { cursor = firstPageCursor, limit = http.pageDefault }
    }: {
      readonly query: { readonly cursor?: number; readonly limit?: number }
    }) {
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
    query: Effect.fnUntraced(function* ({
      params: { binding },
      payload
    }: ByBinding & { readonly payload: Query }) {
      return yield* databases.query(yield* CurrentEnvironment, binding, payload)
    }),
    migrate: Effect.fnUntraced(function* ({
      params: { binding },
      payload
    }: ByBinding & { readonly payload: Migrations }) {
      return yield* databases.migrate(yield* CurrentEnvironment, binding, payload)
    }),
    logs: Effect.fnUntraced(function* ({ query }: { readonly query: LogQuery }) {
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
export const FunctionsHttp = Layer.mergeAll(
  apiGroup(Api, "functions", (handlers) =>
    Effect.map(makeHandlers, (all) => handlers.handleAll(all))
  ),
  apiGroup(Api, "projectFunctions", (handlers) =>
    Effect.map(makeHandlers, (all) => handlers.handleAll(all))
  )
).pipe(Layer.provide([Functions.layer, FunctionsDeployments.layer]))
