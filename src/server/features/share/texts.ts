/** Texts of links and cards: their language, the score in them, and the card tags. */
import type { ShareTag } from "#rpc/share/api"
import { share } from "#rpc/share/limits"
import { escapeHtml } from "#server/platform/mail/templates"

/** Text of the config: one for all languages, or one for each. */
export type Text = string | Readonly<Record<string, string>>

const languagesMax = 20

/**
 * Whether a tag names a language. Parts of a well-formed tag may still repeat or stand in a wrong
 * order.
 */
const isLanguage = (tag: string): boolean => {
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}

/** Returns the languages of an `Accept-Language` header, the most preferred first. */
export const languagesOf = (header: string | undefined): ReadonlyArray<string> =>
  (header ?? "")
    .split(",", languagesMax)
    .map((part) => {
      const [tag = "", ...parameters] = part.split(";").map((it) => it.trim())
      const quality = parameters.find((it) => it.startsWith("q="))
      return { tag, weight: quality === undefined ? 1 : Number(quality.slice(2)) || 0 }
    })
    .filter(({ tag, weight }) => weight > 0 && isLanguage(tag))
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ tag }) => tag)

/** Chooses a text in one of its languages, and the languages for numbers in it. */
const chooseText = (text: Text, languages: ReadonlyArray<string>) => {
  if (typeof text === "string") return { shown: text, languages }
  const byTag = new Map(Object.entries(text).map(([tag, value]) => [tag.toLowerCase(), value]))
  for (const language of languages) {
    const tag = language.toLowerCase()
    const found = byTag.get(tag) ?? byTag.get(tag.split("-", 1)[0] ?? tag)
    if (found !== undefined) return { shown: found, languages: [language] }
  }
  const [tag = "en", shown = ""] = Object.entries(text)[0] ?? []
  const english = byTag.get("en")
  return english === undefined ? { shown, languages: [tag] } : { shown: english, languages: ["en"] }
}

/**
 * Returns the text in the first of these languages that it has: exact, then of any region, else in
 * English.
 */
export const textIn = (text: Text, languages: ReadonlyArray<string>): string =>
  chooseText(text, languages).shown

/** Absolute value from which a score has an exponent, which says more than digits. */
const plainMax = 1e15

/** Formats a score for people: grouped digits, at most three decimals, an exponent for a huge score. */
export const formatScore = (score: number, languages: ReadonlyArray<string>): string =>
  new Intl.NumberFormat([...languages, "en"], {
    notation: Math.abs(score) >= plainMax ? "scientific" : "standard",
    maximumFractionDigits: 3,
    signDisplay: "negative" // none at a zero
  }).format(score)

/** Returns the suggested text of a post. Without a score, removes its placeholder. */
export const postText = (
  text: Text | undefined,
  score: number | null,
  languages: ReadonlyArray<string>
): string | null => {
  if (text === undefined) return null
  const chosen = chooseText(text, languages)
  const shownScore = score === null ? "" : formatScore(score, chosen.languages)
  return chosen.shown
    .replaceAll("{score}", () => shownScore)
    .replace(/ {2,}/g, " ")
    .trim()
}

/** Texts of a card's tags. */
export interface CardTexts {
  readonly title: string
  readonly description: string | undefined
  readonly imageAlt: string | undefined
  readonly site: string | undefined
}

/** Returns the tags of a card with this image, in the forms of Open Graph and X. */
export const cardTags = (
  { description, imageAlt, site, title }: CardTexts,
  image: { readonly url: string; readonly isRendered: boolean }
): ReadonlyArray<ShareTag> => {
  const property = (name: string, content: string | undefined) =>
    content === undefined ? [] : [{ property: name, content }]
  const name = (key: string, content: string | undefined) =>
    content === undefined ? [] : [{ name: key, content }]
  const { cardHeightPixels, cardWidthPixels } = share
  return [
    ...property("og:type", "website"),
    ...property("og:title", title),
    ...property("og:description", description),
    ...property("og:image", image.url),
    ...property("og:image:width", image.isRendered ? `${cardWidthPixels}` : undefined),
    ...property("og:image:height", image.isRendered ? `${cardHeightPixels}` : undefined),
    ...property("og:image:alt", imageAlt),
    ...name("twitter:card", "summary_large_image"),
    ...name("twitter:site", site),
    ...name("twitter:title", title),
    ...name("twitter:description", description),
    ...name("twitter:image", image.url),
    ...name("twitter:image:alt", imageAlt)
  ]
}

/** Renders tags as HTML, one per line. */
export const htmlOf = (tags: ReadonlyArray<ShareTag>): string =>
  tags
    .map(({ content, name, property }) => {
      const key = property === undefined ? `name="${name ?? ""}"` : `property="${property}"`
      return `<meta ${key} content="${escapeHtml(content)}">`
    })
    .join("\n")
