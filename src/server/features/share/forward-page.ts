/**
 * Page `/.svc/s?ks=<id>` on the origin of a hosted app, to which share links lead. Previews read the tags of
 * the card from it; people are forwarded to the app at once, with the whole query. It is the same for every
 * user agent and language, and the pages of the app stay as they were deployed.
 */
import { hash } from "node:crypto"
import { Effect, Option } from "effect"
import { reservedPaths } from "#rpc/hosting/paths"
import type { ShareTag } from "#rpc/share/api"
import { share } from "#rpc/share/limits"
import { escapeHtml } from "#server/platform/mail/templates"
import { AppRepository } from "#sql/hosting/apps"
import type { HostedApp } from "../hosting/apps.ts"
import { isShareId } from "./links.ts"
import { makeTags } from "./tags.ts"
import { htmlOf } from "./texts.ts"

/** Keeps the query, in which the app finds `ks`. */
const script = `location.replace("/"+location.search+location.hash)`

const headers = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "public, max-age=300",
  "x-content-type-options": "nosniff",
  "content-security-policy":
    `default-src 'none'; script-src 'sha256-${hash("sha256", script, "base64")}'; ` +
    "base-uri 'none'; form-action 'none'"
} as const

const pageOf = (title: string, tags: ReadonlyArray<ShareTag>, query: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title>\n` +
  `${htmlOf(tags)}\n<script>${script}</script>` +
  `<noscript><meta http-equiv="refresh" content="0;url=/${escapeHtml(query)}"></noscript></head>` +
  `<body><a href="/${escapeHtml(query)}">${escapeHtml(title)}</a></body></html>`

/** Tags that previews take from others of the same meaning, and those that they can do without. */
const dispensable = [
  ["twitter:title", "twitter:description", "twitter:image", "twitter:image:alt"],
  ["og:image:alt"],
  ["og:description"],
  ["twitter:site"]
]

interface Card {
  readonly title: string
  readonly tags: ReadonlyArray<ShareTag>
}

/**
 * The page within its bound. It leaves out tags until it fits. Then it names the link alone where a browser
 * without scripts goes: the rest of a long query is lost there.
 */
const boundedPage = ({ tags, title }: Card, queries: ReadonlyArray<string>): string => {
  let page = ""
  for (const query of queries) {
    let kept = tags
    for (const names of dispensable) {
      kept = kept.filter(({ name, property }) => !names.includes(name ?? property ?? ""))
      page = pageOf(title, kept, query)
      if (Buffer.byteLength(page) <= share.forwardPageMaxBytes) return page
    }
  }
  return page
}

/** Response with the page. */
export interface ForwardPage {
  readonly headers: Readonly<Record<string, string | number>>
  readonly body: Buffer
}

const path = `/${reservedPaths.shared}`

/** Builds the page for the address of a request; undefined for other addresses. */
export const makeForwardPage = Effect.gen(function* () {
  const apps = yield* AppRepository
  const tagsOf = yield* makeTags
  return Effect.fnUntraced(function* ({ environmentId, isPreview }: HostedApp, search: string) {
    const parameters = new URLSearchParams(search)
    const ks = parameters.get("ks") ?? undefined
    const built = yield* Effect.option(tagsOf(environmentId, ks, []))
    const app = Option.isSome(built) ? Option.none() : yield* apps.byId(environmentId)
    const title = Option.match(app, { onNone: () => "", onSome: ({ projectName }) => projectName })
    const card = Option.getOrElse(built, () => ({ tags: [], title }))
    const short = ks !== undefined && isShareId(ks) ? `?ks=${ks}` : ""
    const body = Buffer.from(boundedPage(card, [search, short]))
    const page: ForwardPage = {
      body,
      headers: {
        ...headers,
        "content-length": body.length,
        ...(isPreview ? { "x-robots-tag": "noindex" } : {})
      }
    }
    return page
  })
})

/** The query of a request for the page, with its question mark; undefined for another request. */
export const forwardQuery = (url: string): string | undefined => {
  const [before = "", ...rest] = url.split("?")
  if (before !== path && before !== `${path}/`) return undefined
  return rest.length === 0 ? "" : `?${rest.join("?")}`
}
