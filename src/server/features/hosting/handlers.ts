/** Hosting over HTTP, for secret keys and for developers of the project. */
import { IncomingMessage } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Layer } from "effect"
import { HttpServerError } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { PayloadTooLarge, Unavailable } from "#rpc/errors/codes"
import { hosting } from "#rpc/hosting/limits"
import { http } from "#rpc/limits"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { requireCredentials, untilCredentialsEnd } from "#server/platform/credential-check"
import { firstPageCursor, pageOf } from "#server/platform/pages"
import { Configs } from "../config/service.ts"
import { Blobs } from "./blobs.ts"
import { GarbageCollectionLive } from "./garbage-collection.ts"
import { CustomDomains } from "./domains.ts"
import { Deployments } from "./service.ts"

const makeDeploymentHandlers = Effect.gen(function* () {
  const configs = yield* Configs
  const deployments = yield* Deployments
  return {
    create: Effect.fnUntraced(function* ({ payload }: RequestOf<"hosting", "create">) {
      const environment = yield* CurrentEnvironment
      return yield* deployments.create(environment, payload)
    }),
    finalize: Effect.fnUntraced(function* ({
      params: { ref },
      payload: { activate = false }
    }: RequestOf<"hosting", "finalize">) {
      return yield* deployments.finalize(yield* CurrentEnvironment, ref, activate)
    }),
    activate: Effect.fnUntraced(function* ({ params: { ref } }: RequestOf<"hosting", "activate">) {
      return yield* deployments.activate(yield* CurrentEnvironment, ref)
    }),
    list: Effect.fnUntraced(function* ({
      query: { cursor = firstPageCursor, limit = http.pageDefault }
    }: RequestOf<"hosting", "list">) {
      const environment = yield* CurrentEnvironment
      const found = yield* deployments.page(environment, { before: cursor, limit: limit + 1 })
      const { nextCursor, rows } = pageOf(found, limit, ({ version }) => `${version}`)
      return { deployments: rows, nextCursor }
    }),
    get: Effect.fnUntraced(function* ({ params: { ref } }: RequestOf<"hosting", "get">) {
      return yield* deployments.get(yield* CurrentEnvironment, ref)
    }),
    hosting: Effect.fnUntraced(function* () {
      const environment = yield* CurrentEnvironment
      const { config } = yield* configs.current(environment.environmentId)
      return yield* deployments.hosting(environment, config.features.hosting)
    })
  }
})

const makeDomainHandlers = Effect.gen(function* () {
  const domains = yield* CustomDomains
  return {
    listDomains: Effect.fnUntraced(function* () {
      return { domains: yield* domains.list(yield* CurrentEnvironment) }
    }),
    addDomain: Effect.fnUntraced(function* ({ payload }: RequestOf<"hosting", "addDomain">) {
      return yield* domains.add(yield* CurrentEnvironment, payload.domain)
    }),
    verifyDomain: Effect.fnUntraced(function* ({ params }: RequestOf<"hosting", "verifyDomain">) {
      return yield* domains.verify(yield* CurrentEnvironment, params.domain)
    }),
    removeDomain: Effect.fnUntraced(function* ({ params }: RequestOf<"hosting", "removeDomain">) {
      yield* domains.remove(yield* CurrentEnvironment, params.domain)
      return { deleted: true } as const
    })
  }
})

const makeUploadHandler = Effect.map(Blobs, (blobs) =>
  Effect.fnUntraced(function* ({
    params: { sha256 },
    request
  }: Pick<RequestOf<"hosting", "upload">, "params" | "request">) {
    const environment = yield* CurrentEnvironment
    if (Number(request.headers["content-length"]) > hosting.blobMaxBytes) {
      return yield* new PayloadTooLarge({ details: { limit: hosting.blobMaxBytes } })
    }
    const source = NodeHttpServerRequest.toIncomingMessage(request)
    if (!(source instanceof IncomingMessage)) return yield* new Unavailable()
    if (/^100-continue$/i.test(request.headers["expect"] ?? "")) {
      NodeHttpServerRequest.toServerResponse(request).writeContinue()
    }
    const upload = untilCredentialsEnd(blobs.upload(environment, sha256, source))
    const unreadable = Effect.die(
      new HttpServerError.HttpServerError({
        reason: new HttpServerError.RequestParseError({ request, reason: "Parse", cause: source })
      })
    )
    return yield* Effect.catchTags(upload, {
      UploadCut: () => unreadable,
      CredentialEnded: () => Effect.andThen(requireCredentials, unreadable)
    })
  })
)

const makeHosting = Effect.gen(function* () {
  const all = { ...(yield* makeDeploymentHandlers), ...(yield* makeDomainHandlers) }
  return { all, upload: yield* makeUploadHandler }
})

/** The groups `hosting` and `projectHosting`. */
export const HostingHttp = mounted(makeHosting, ({ all, upload }) => [
  apiGroup(Api, "hosting", (handlers) => handlers.handleAll(all).handleRaw("upload", upload)),
  apiGroup(Api, "projectHosting", (handlers) => handlers.handleAll(all).handleRaw("upload", upload))
]).pipe(Layer.merge(GarbageCollectionLive), Layer.provide([Blobs.layer, Deployments.layer]))
