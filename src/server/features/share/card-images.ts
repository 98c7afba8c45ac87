/**
 * Card images of apps and links. The service draws equal cards once, keyed by a hash of everything that
 * they show. Cards in progress are in memory, and drawn cards are on disk. An unusable background or
 * font gives the built-in look, never an error.
 */
import { createHash } from "node:crypto"
import { Clock, Context, Deferred, Effect, Layer, Option } from "effect"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { type Issue, NotFound, ShareImagesDisabled, Unavailable } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { share, shareCards } from "#rpc/share/limits"
import { matchesTag } from "#server/platform/entity-tags"
import { AppRepository, type AppRow } from "#sql/hosting/apps"
import type { FoundLink } from "#sql/share/links"
import { Configs } from "../config/service.ts"
import { Blobs } from "../hosting/blobs.ts"
import { makeAppOfLabel } from "../hosting/labels.ts"
import { type LiveApp, makeLiveApp, makeReadFile } from "../hosting/live-app.ts"
import type { SiteFile } from "../hosting/site.ts"
import { FailedAssets, fontProblem, pictureProblem } from "./cards/asset-checks.ts"
import { makeCardCache } from "./cards/cache.ts"
import type { Card } from "./cards/layout.ts"
import { DrawFault, makeRenderer } from "./cards/renderer.ts"
import { makeFind, shownName } from "./links.ts"
import { formatScore, textIn } from "./texts.ts"

/** Languages of card texts. Machines read cards and request no language. */
const languages: ReadonlyArray<string> = []

const lines = { plain: undefined, score: "Score", challenge: "Can you beat" } as const

const defaultTheme = { background: "#0f1115", accent: "#ffcc33", text: "#ffffff" }

/** Returns the card of a link, or of the app without a link. */
export const cardOf = (
  { projectName }: Pick<AppRow, "projectName">,
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

/**
 * Version of the card look. Increase it with every visible change, so that the cache finds no card of
 * an older release.
 */
const lookVersion = 2

/** Files of the live deployment that a card uses. */
interface Assets {
  readonly live: LiveApp
  readonly background: SiteFile | undefined
  readonly font: SiteFile | undefined
}

const keyOf = (card: Card, assets: Assets | undefined): string =>
  createHash("sha256")
    .update(JSON.stringify([lookVersion, card, assets?.background?.sha256, assets?.font?.sha256]))
    .digest("hex")

/** The hashes of the app's files on a card. */
const filesOf = ({ background, font }: Assets): string =>
  `${background?.sha256 ?? ""} ${font?.sha256 ?? ""}`

/** Card of a response. Without `png` the client already has the picture. */
export interface ServedCard {
  readonly headers: Readonly<Record<string, string>>
  readonly png: Uint8Array | undefined
}

/** Serves card images. */
export class CardImages extends Context.Service<
  CardImages,
  {
    /**
     * Finds the card of an app, or of one of its links; `tags` is the `If-None-Match` of the request.
     */
    readonly find: (
      label: string,
      shareId: string | undefined,
      tags: string | undefined
    ) => Effect.Effect<ServedCard, NotFound | ShareImagesDisabled | Unavailable>
  }
>()("server/features/share/card-images/CardImages") {
  static readonly layer = Layer.effect(
    CardImages,
    Effect.gen(function* () {
      const configs = yield* Configs
      const environmentOf = yield* makeAppOfLabel
      const find = yield* makeFind
      const assetsOf = yield* makeAssets
      const draw = yield* makeDraw
      const picture = yield* makePicture(draw.withAssets)
      const check = yield* makeCheck(draw.tryFile)
      yield* configs.addCheck(check)
      return CardImages.of({
        find: Effect.fn("CardImages.find")(function* (label, shareId, tags) {
          const environment = yield* environmentOf(label)
          if (environment === undefined) return yield* new NotFound()
          const { environmentId } = environment
          const { config } = yield* configs.current(environmentId)
          if (!config.share.images.enabled) return yield* new ShareImagesDisabled()
          const link = shareId === undefined ? undefined : yield* find(environmentId, shareId)
          if (link !== undefined && Option.isNone(link)) return yield* new NotFound()
          const shown = link === undefined ? undefined : Option.getOrUndefined(link)
          const card = cardOf(environment, config, shown)
          const named = yield* assetsOf(environment, config)
          const assets = named !== undefined && (yield* draw.isUsable(named)) ? named : undefined
          const key = keyOf(card, assets)
          const etag = `"${key}"`
          const headers = {
            etag,
            "cache-control": `public, max-age=${shareCards.maxAgeSeconds}`,
            // Pages of other origins show cards, isolated ones (COEP) too.
            "cross-origin-resource-policy": "cross-origin"
          }
          if (tags !== undefined && matchesTag(tags, etag)) return { headers, png: undefined }
          return { headers, png: yield* picture(environmentId, key, card, assets) }
        })
      })
    })
  ).pipe(Layer.provide(Blobs.layer))
}

/** Finds the files that the config names, if the live deployment has them. */
const makeAssets = Effect.gen(function* () {
  const liveApp = yield* makeLiveApp
  return Effect.fnUntraced(function* (
    { name, slug }: AppRow,
    { share: { images } }: EnvironmentConfig
  ) {
    if (images.background === undefined && images.font === undefined) return undefined
    const live = yield* liveApp(slug, name)
    if (live === undefined) return undefined
    const fileOf = (path: string | undefined) =>
      path === undefined ? undefined : live.files.get(path.replace(/^\//, ""))
    const assets: Assets = {
      live,
      background: fileOf(images.background),
      font: fileOf(images.font)
    }
    return assets
  })
})

const builtIn = { background: undefined, font: undefined }

/** Draws a card. Uses the built-in look if the app's font or background is unusable. */
const makeDraw = Effect.gen(function* () {
  const draw = yield* makeRenderer
  const readFile = yield* makeReadFile
  const read = (live: LiveApp, file: SiteFile | undefined, maxBytes: number) =>
    file === undefined
      ? Effect.succeed(undefined)
      : Effect.map(readFile(live, file, maxBytes), Option.getOrUndefined)
  const failed = new FailedAssets()
  const now = Effect.map(Clock.Clock, (clock) => clock.currentTimeMillisUnsafe())
  const refuse = (problem: string | undefined) =>
    problem === undefined ? Effect.void : Effect.fail(new DrawFault({ kind: "refused", problem }))
  const drawBuiltIn = (environmentId: string, card: Card) =>
    Effect.catchTag(draw(environmentId, { card, ...builtIn }), "DrawFault", (fault) =>
      fault.kind === "refused"
        ? Effect.die(fault)
        : Effect.andThen(
            Effect.logWarning("Failed to draw a card", fault),
            Effect.fail(new Unavailable())
          )
    )
  /** Draws with the app's files; undefined if they are unusable. It remembers those files. */
  const drawOwn = Effect.fnUntraced(
    function* (environmentId: string, card: Card, { background, font, live }: Assets) {
      const picture = yield* read(live, background, share.cardBackgroundMaxBytes)
      const letters = yield* read(live, font, share.cardFontMaxBytes)
      yield* refuse(picture === undefined ? undefined : pictureProblem(picture))
      yield* refuse(letters === undefined ? undefined : fontProblem(letters))
      return yield* draw(environmentId, { card, background: picture, font: letters })
    },
    (effect, environmentId, _card, assets) =>
      Effect.catchTag(
        effect,
        "DrawFault",
        Effect.fnUntraced(function* ({ problem }) {
          failed.add(filesOf(assets), yield* now)
          yield* Effect.logWarning(
            `Failed to use the background or the font of the cards of ${environmentId}: ${problem}`
          )
          return undefined
        })
      )
  )
  const withAssets = Effect.fnUntraced(function* (
    environmentId: string,
    card: Card,
    assets: Assets | undefined
  ) {
    const own = assets === undefined ? undefined : yield* drawOwn(environmentId, card, assets)
    if (own !== undefined) return { png: own, key: keyOf(card, assets) }
    return { png: yield* drawBuiltIn(environmentId, card), key: keyOf(card, undefined) }
  })
  /**
   * Returns why a card with only this file cannot be drawn; undefined if it can, or if the check is
   * impossible now.
   */
  const tryFile = Effect.fnUntraced(
    function* (live: LiveApp, kind: "background" | "font", file: SiteFile) {
      const bytes = yield* read(live, file, file.size)
      if (bytes === undefined) return undefined
      yield* refuse(kind === "font" ? fontProblem(bytes) : pictureProblem(bytes))
      yield* draw(live.environmentId, { card: sampleCard, ...builtIn, [kind]: bytes })
      return undefined
    },
    Effect.catchTag("DrawFault", ({ problem }) => Effect.succeed(problem)),
    Effect.catchTag("unavailable", () => Effect.succeed(undefined))
  )
  const isUsable = (assets: Assets) =>
    Effect.map(now, (nowMillis) => !failed.has(filesOf(assets), nowMillis))
  return { withAssets, tryFile, isUsable }
})

type Draw = Effect.Success<typeof makeDraw>

const sampleCard: Card = {
  title: "Title",
  line: undefined,
  score: undefined,
  name: undefined,
  theme: defaultTheme
}

const mebibyte = 1024 * 1024

/** Finds card files that the live deployment lacks, or that are unusable. */
const makeCheck = Effect.fnUntraced(function* (tryFile: Draw["tryFile"]) {
  const apps = yield* AppRepository
  const liveApp = yield* makeLiveApp
  const problemOf = Effect.fnUntraced(function* (
    live: LiveApp | undefined,
    kind: "background" | "font",
    name: string
  ) {
    if (live === undefined) return "has no effect yet: no version that has this file is live"
    const file = live.files.get(name.replace(/^\//, ""))
    if (file === undefined) return "is not in the live version: deploy it, or correct the path"
    const maxBytes = kind === "font" ? share.cardFontMaxBytes : share.cardBackgroundMaxBytes
    if (file.size > maxBytes)
      return `is larger than ${maxBytes / mebibyte} MB: cards have the built-in look`
    const problem = yield* tryFile(live, kind, file)
    const wanted = kind === "font" ? "a TTF or OTF" : "a PNG or JPEG"
    return problem === undefined ? undefined : `cannot be used (${problem}): deploy ${wanted} there`
  })
  return Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    { share: { images } }: EnvironmentConfig
  ) {
    const issues: Array<Issue> = []
    if (!images.enabled) return issues
    const environment = Option.getOrUndefined(yield* apps.byId(environmentId))
    if (environment === undefined) return issues
    for (const kind of ["background", "font"] as const) {
      const name = images[kind]
      if (name === undefined) continue
      const live = yield* liveApp(environment.slug, environment.name)
      const message = yield* problemOf(live, kind, name)
      if (message !== undefined) issues.push({ path: `share.images.${kind}`, message })
    }
    return issues
  })
})

/**
 * Finds a card on disk, or draws it. Concurrent callers get the same picture. The drawing continues
 * after its callers have disconnected.
 */
const makePicture = Effect.fnUntraced(function* (draw: Draw["withAssets"]) {
  const scope = yield* Effect.scope
  const cache = yield* makeCardCache
  const underWay = new Map<string, Deferred.Deferred<Uint8Array, Unavailable>>()

  const findOrDraw = Effect.fnUntraced(function* (
    environmentId: string,
    key: string,
    card: Card,
    assets: Assets | undefined
  ) {
    const stored = yield* cache.read(key)
    if (Option.isSome(stored)) return stored.value
    const drawn = yield* draw(environmentId, card, assets)
    yield* cache.write(drawn.key, drawn.png)
    return drawn.png
  })

  return Effect.fnUntraced(function* (
    environmentId: string,
    key: string,
    card: Card,
    assets: Assets | undefined
  ) {
    const known = underWay.get(key)
    if (known !== undefined) return yield* Deferred.await(known)
    const deferred = Deferred.makeUnsafe<Uint8Array, Unavailable>()
    underWay.set(key, deferred)
    yield* findOrDraw(environmentId, key, card, assets).pipe(
      Effect.onExit((exit) => {
        underWay.delete(key)
        return Deferred.done(deferred, exit)
      }),
      Effect.forkIn(scope, { startImmediately: true })
    )
    return yield* Deferred.await(deferred)
  })
})
