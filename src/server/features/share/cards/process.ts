/**
 * Process that draws cards for the service that forked it, one at a time. A fault of the renderer ends
 * only this process. It ends itself when a picture or a font makes it exceed its memory bound.
 */
import { createHash } from "node:crypto"
import { constants, setPriority } from "node:os"
import { Renderer } from "@takumi-rs/core"
import { shareCards, share } from "#rpc/share/limits"
import { familyNames, makeFontsFor } from "./fonts.ts"
import { backgroundName, type Card, cardTree } from "./layout.ts"

/** Card to draw. */
export interface DrawRequest {
  readonly id: number
  readonly card: Card
  readonly background: Uint8Array | undefined
  readonly font: Uint8Array | undefined
}

/** Picture, or the reason of the failure. */
export type DrawReply =
  | { readonly id: number; readonly png: Uint8Array }
  | { readonly id: number; readonly problem: string }

// Players come first. Threads of the renderer begin later, and have the same priority.
setPriority(constants.priority.PRIORITY_LOW)

const checkMillis = 50
setInterval(() => {
  if (process.memoryUsage.rss() > shareCards.processMaxBytes) process.exit(1)
}, checkMillis).unref()

const fontsFor = makeFontsFor()
const ownFontName = "App"

/** Renderer with the fonts that its cards have needed so far. */
class Faces {
  readonly renderer = new Renderer({ cacheMaxBytes: shareCards.rendererCacheBytes })
  readonly #loaded = new Set<string>()

  async load(text: string): Promise<void> {
    for (const { id, load } of fontsFor(text)) {
      if (this.#loaded.has(id)) continue
      await this.renderer.registerFont(load())
      this.#loaded.add(id)
    }
  }
}

/** Renderers by the app's own font, least recently used first. */
const faces = new Map<string, Faces>()

const facesOf = async (font: Uint8Array | undefined): Promise<Faces> => {
  const key = font === undefined ? "" : createHash("sha256").update(font).digest("hex")
  const known = faces.get(key) ?? new Faces()
  if (font !== undefined && !faces.has(key)) {
    await known.renderer.registerFont({ name: ownFontName, data: font })
  }
  faces.delete(key)
  faces.set(key, known)
  for (const oldest of faces.keys()) {
    if (faces.size <= shareCards.fontsCached) break
    faces.delete(oldest)
  }
  return known
}

const draw = async ({ background, card, font }: DrawRequest): Promise<Uint8Array> => {
  const known = await facesOf(font)
  await known.load([card.title, card.line, card.score, card.name].join("\n"))
  return known.renderer.render(cardTree(card, background !== undefined), {
    width: share.cardWidthPixels,
    height: share.cardHeightPixels,
    format: "png",
    fontFamilies: [...(font === undefined ? [] : [ownFontName]), ...familyNames],
    ...(background === undefined
      ? {}
      : { images: [{ src: backgroundName, data: background, cache: "none" as const }] })
  })
}

const send = (reply: DrawReply): void => {
  process.send?.(reply)
}

process.on("message", (request: DrawRequest) => {
  draw(request).then(
    (png) => send({ id: request.id, png }),
    (error: unknown) => send({ id: request.id, problem: String(error) })
  )
})
// The service has ended.
process.on("disconnect", () => process.exit())
