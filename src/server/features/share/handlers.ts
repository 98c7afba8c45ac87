/** Share over HTTP: `/v1/share` for players and pages, `share/...` for operators. */
import { Effect, Layer } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer, OptionalPlayer } from "#rpc/auth"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { clientAddress } from "#server/platform/client-address"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Audit } from "../audit/service.ts"
import { CardImages, type ServedCard } from "./card-images.ts"
import { ShareGatesLive } from "./gates.ts"
import { makeCreate, makeLabelled, makeRead } from "./links.ts"
import { makeStats } from "./stats.ts"
import { makeTags } from "./tags.ts"
import { languagesOf } from "./texts.ts"
import { makeVisit } from "./visits.ts"

/** Visits through share links, reported from one IP address. */
const shareVisitsPerAddress = { burst: 60, seconds: 60 } as const

const languages = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
  languagesOf(headers["accept-language"])
)

const cardResponse = ({ headers, png }: ServedCard) =>
  png === undefined
    ? HttpServerResponse.empty({ status: 304, headers })
    : HttpServerResponse.uint8Array(png, { contentType: "image/png", headers })

/** Adds `Retry-After` to the response when too many cards wait for drawing. */
const retrySoon = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", "1"))
)

const makeReadTags = Effect.gen(function* () {
  const tags = yield* makeTags
  return Effect.fnUntraced(function* ({ query }: RequestOf<"share", "tags">) {
    const { environmentId } = yield* CurrentEnvironment
    return yield* tags(environmentId, query.ks, yield* languages)
  })
})

const ShareGroup = apiGroup(
  Api,
  "share",
  Effect.fn(function* (handlers) {
    const cards = yield* CardImages
    const create = yield* makeCreate
    const read = yield* makeRead
    const throttles = yield* Throttles
    const { trustedProxies } = yield* Settings
    const visit = yield* makeVisit
    const card = (
      label: string,
      shareId: string | undefined,
      { headers }: HttpServerRequest.HttpServerRequest
    ) =>
      cards.find(label, shareId, headers["if-none-match"]).pipe(
        Effect.map(cardResponse),
        Effect.tapErrorTag("unavailable", () => retrySoon)
      )
    return handlers.handleAll({
      create: Effect.fnUntraced(function* ({ payload }) {
        const player = yield* CurrentPlayer
        return yield* create(player, payload, yield* languages)
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        const { environmentId } = yield* CurrentEnvironment
        return yield* read(environmentId, params.shareId)
      }),
      visit: Effect.fnUntraced(function* ({ payload, request }) {
        const { environmentId } = yield* CurrentEnvironment
        const player = yield* OptionalPlayer
        const address = clientAddress(request, trustedProxies)
        const key = `visits:${environmentId}:${address}`
        yield* takeToken(throttles, shareVisitsPerAddress, key)
        const userAgent = request.headers["user-agent"] ?? ""
        return yield* visit(environmentId, { player, address, userAgent }, payload)
      }),
      tags: yield* makeReadTags,
      defaultImage: ({ params, request }) => card(params.label, undefined, request),
      image: ({ params, request }) => card(params.label, params.shareId, request)
    })
  })
)

const makeOperators = Effect.gen(function* () {
  const audit = yield* Audit
  const labelled = yield* makeLabelled
  const stats = yield* makeStats
  return {
    stats: Effect.fnUntraced(function* ({ query }: RequestOf<"adminShare", "stats">) {
      const { environmentId } = yield* CurrentEnvironment
      return yield* stats(environmentId, query)
    }),
    link: Effect.fnUntraced(function* ({ endpoint, payload }: RequestOf<"adminShare", "link">) {
      const { environmentId } = yield* CurrentEnvironment
      const make = labelled(environmentId, payload.label)
      return yield* audit.recordOperation(endpoint, make, ({ link }) => ({
        target: { kind: "shareLink", id: link.id },
        details: { label: link.label }
      }))
    }),
    tags: yield* makeReadTags
  }
})

/** The groups `share`, `adminShare` and `projectShare`. */
export const ShareHttp = mounted(makeOperators, (all) => [
  apiGroup(Api, "adminShare", (handlers) => handlers.handleAll(all)),
  apiGroup(Api, "projectShare", (handlers) => handlers.handleAll(all))
]).pipe(Layer.merge(ShareGroup), Layer.provide(ShareGatesLive))
