/** Hosting over HTTP, for secret keys and for developers of the project. */
import { IncomingMessage } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Layer } from "effect"
import { HttpServerError, type HttpServerRequest } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { PayloadTooLarge, Unavailable } from "#rpc/errors/codes"
import type { NewDeployment } from "#rpc/hosting/api"
import { hosting } from "#rpc/hosting/limits"
import { http } from "#rpc/limits"
import { apiGroup, mounted } from "#server/platform/api-group"
import { requireCredentials, untilCredentialsEnd } from "#server/platform/credential-check"
import { firstPageCursor, pageOf } from "#server/platform/pages"
import { Configs } from "../config/service.ts"
import { Blobs } from "./blobs.ts"
import { GarbageCollectionLive } from "./garbage-collection.ts"
import { CustomDomains } from "./domains.ts"
import { Deployments } from "./service.ts"

interface ByRef {
  readonly params: { readonly ref: string }
}

interface UploadRequest {
  readonly params: { readonly sha256: string }
  readonly request: HttpServerRequest.HttpServerRequest
}

const makeDeploymentHandlers = Effect.gen(function* () {
  const configs = yield* Configs
  const deployments = yield* Deployments
  return {
    create: Effect.fnUntraced(function* ({ payload }: { readonly payload: NewDeployment }) {
      const environment = yield* CurrentEnvironment
      return yield* deployments.create(environment, payload)
    }),
    finalize: Effect.fnUntraced(function* ({
      params: { ref },
      payload: { activate = false }
    }: ByRef & { readonly payload: { readonly activate?: boolean } }) {
      return yield* deployments.finalize(yield* CurrentEnvironment, ref, activate)
    }),
    activate: Effect.fnUntraced(function* ({ params: { ref } }: ByRef) {
      return yield* deployments.activate(yield* CurrentEnvironment, ref)
    }),
    list: Effect.fnUntraced(function* ({
      query: { cursor = firstPageCursor, limit = http.pageDefault }
    }: {
      readonly query: { readonly cursor?: number; readonly limit?: number }
    }) {
      const environment = yield* CurrentEnvironment
      const found = yield* deployments.page(environment, { before: cursor, limit: limit + 1 })
      const { nextCursor, rows } = pageOf(found, limit, ({ version }) => `${version}`)
      return { deployments: rows, nextCursor }
    }),
    get: Effect.fnUntraced(function* ({ params: { ref } }: ByRef) {
      return yield* deployments.get(yield* CurrentEnvironment, ref)
    }),
    hosting: Effect.fnUntraced(function* () {
      const environment = yield* CurrentEnvironment
      const { config } = yield* configs.current(environment.environmentId)
      return yield* deployments.hosting(environment, config.features.hosting)
    })
  }
})

interface ByDomain {
  readonly params: { readonly domain: string }
}

const makeDomainHandlers = Effect.gen(function* () {
  const domains = yield* CustomDomains
  return {
    listDomains: Effect.fnUntraced(function* () {
      return { domains: yield* domains.list(yield* CurrentEnvironment) }
    }),
    addDomain: Effect.fnUntraced(function* ({
      payload: { domain }
    }: {
      readonly payload: { readonly domain: string }
    }) {
      return yield* domains.add(yield* CurrentEnvironment, domain)
    }),
    verifyDomain: Effect.fnUntraced(function* ({ params: { domain } }: ByDomain) {
      const environment = yield* CurrentEnvironment
      return yield* domains.verify(environment, domain)
    }),
    removeDomain: Effect.fnUntraced(function* ({ params: { domain } }: ByDomain) {
      yield* domains.remove(yield* CurrentEnvironment, domain)
      return { deleted: true } as const
    })
  }
})

const makeUploadHandler = Effect.map(Blobs, (blobs) =>
  Effect.fnUntraced(function* ({ params: { sha256 }, request }: UploadRequest) {
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
