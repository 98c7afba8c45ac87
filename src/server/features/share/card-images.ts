/**
 * Card images of apps and links. Equal cards are drawn once: they are found again by a hash of everything
 * that they show, in memory while one is being drawn and on disk afterwards. A background or font that
 * cannot be used gives the built-in look, never an error.
 */
import { createHash } from "node:crypto"
import { Cache, Context, Deferred, Effect, Layer, Option } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { NotFound, ShareImagesDisabled, type Unavailable } from "#rpc/errors/codes"
import { shareCards as bounds } from "#rpc/limits"
import { type FoundLink, type LabelledEnvironment, ShareLinkRepository } from "#sql/share/links"
import { Configs } from "../config/service.ts"
import { parseLabel } from "./addresses.ts"
import { makeCardCache } from "./cards/cache.ts"
import type { Card } from "./cards/layout.ts"
import { makeRenderer } from "./cards/renderer.ts"
import { makeFind, shownName } from "./links.ts"
import { formatScore, textIn } from "./texts.ts"

/** Cards are read by machines, which say no language. */
const languages: ReadonlyArray<string> = []

const lines = { plain: undefined, score: "Score", challenge: "Can you beat" } as const

const defaultTheme = { background: "#0f1115", accent: "#ffcc33", text: "#ffffff" }

/** What the card of a link shows, or without one that of the app. */
export const cardOf = (
  { projectName }: Pick<LabelledEnvironment, "projectName">,
  config: EnvironmentConfig,
  link: FoundLink | undefined
): Card => {
  const { images } = config.share
  const { accent, background, text } = images.theme ?? defaultTheme
  return {
    title: textIn(images.title ?? projectName, languages),
    line: link === undefined ? undefined : lines[link.kind],
    score:
      link === undefined || link.score === null ? undefined : formatScore(link.score, languages),
    name: link === undefined ? undefined : (shownName(link, config) ?? undefined),
    theme: { accent, background, text }
  }
}

/** Rises when cards look different, so that none of an older release is found. */
const lookVersion = 1

const keyOf = (card: Card): string =>
  createHash("sha256")
    .update(JSON.stringify([lookVersion, card]))
    .digest("hex")

/** Serves card images. */
export class CardImages extends Context.Service<
  CardImages,
  {
    /** The card of an app, or of one of its links. */
    readonly serve: (
      label: string,
      shareId: string | undefined,
      request: HttpServerRequest.HttpServerRequest
    ) => Effect.Effect<
      HttpServerResponse.HttpServerResponse,
      NotFound | ShareImagesDisabled | Unavailable
    >
  }
>()("server/features/share/card-images/CardImages") {
  static readonly layer = Layer.effect(
    CardImages,
    Effect.gen(function* () {
      const configs = yield* Configs
      const environmentOf = yield* makeEnvironmentOf
      const find = yield* makeFind
      const picture = yield* makePicture
      return CardImages.of({
        serve: Effect.fn("CardImages.serve")(function* (label, shareId, request) {
          const environment = yield* environmentOf(label)
          if (environment === undefined) return yield* new NotFound()
          const { environmentId } = environment
          const { config } = yield* configs.current(environmentId)
          if (!config.share.images.enabled) return yield* new ShareImagesDisabled()
          const link = shareId === undefined ? undefined : yield* find(environmentId, shareId)
          if (link !== undefined && Option.isNone(link)) return yield* new NotFound()
          const shown = link === undefined ? undefined : Option.getOrUndefined(link)
          const card = cardOf(environment, config, shown)
          const key = keyOf(card)
          const headers = {
            etag: `"${key}"`,
            "cache-control": `public, max-age=${bounds.maxAgeSeconds}`
          }
          if (matches(request.headers["if-none-match"], key)) {
            return HttpServerResponse.empty({ status: 304, headers })
          }
          const png = yield* picture(environmentId, key, card)
          return HttpServerResponse.uint8Array(png, { contentType: "image/png", headers })
        })
      })
    })
  )
}

const matches = (tags: string | undefined, key: string): boolean =>
  (tags ?? "").split(",").some((tag) => ["*", `"${key}"`].includes(tag.trim().replace(/^W\//, "")))

const labelsCached = 1000
const labelTtl = "10 seconds"

/** The environment of a label, remembered for seconds. */
const makeEnvironmentOf = Effect.gen(function* () {
  const links = yield* ShareLinkRepository
  const cached = yield* Cache.make({
    capacity: labelsCached,
    timeToLive: labelTtl,
    lookup: (label: string) => {
      const parsed = parseLabel(label)
      if (parsed === undefined) return Effect.succeed(undefined)
      return Effect.map(links.environmentOf(parsed.slug, parsed.name), Option.getOrUndefined)
    }
  })
  return (label: string) => Cache.get(cached, label)
})

/** Finds a card on disk, or draws it; those who ask for it meanwhile get the same picture. */
const makePicture = Effect.gen(function* () {
  const cache = yield* makeCardCache
  const draw = yield* makeRenderer
  const underWay = new Map<string, Deferred.Deferred<Uint8Array, Unavailable>>()

  const findOrDraw = Effect.fnUntraced(function* (environmentId: string, key: string, card: Card) {
    const stored = yield* cache.read(key)
    if (Option.isSome(stored)) return stored.value
    const png = yield* Effect.catchTag(
      draw(environmentId, { card, background: undefined, font: undefined }),
      "DrawFault",
      (fault) => Effect.die(fault)
    )
    yield* cache.write(key, png)
    return png
  })

  return Effect.fnUntraced(function* (environmentId: string, key: string, card: Card) {
    const known = underWay.get(key)
    if (known !== undefined) return yield* Deferred.await(known)
    const deferred = yield* Deferred.make<Uint8Array, Unavailable>()
    underWay.set(key, deferred)
    return yield* findOrDraw(environmentId, key, card).pipe(
      Effect.onExit((exit) => {
        underWay.delete(key)
        return Deferred.done(deferred, exit)
      })
    )
  })
})
