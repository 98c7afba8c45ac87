/**
 * Page `/s/<id>` of a link whose app names no page of its own. It exists so that players can post the
 * link, and shows nothing that the card does not.
 */
import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { paths } from "#rpc/paths"
import { escapeHtml } from "#server/platform/mail/templates"
import { AppRepository } from "#sql/hosting/apps"
import { ShareLinkRepository } from "#sql/share/links"
import { isShareId } from "./links.ts"
import { makeTags } from "./tags.ts"
import { languagesOf } from "./texts.ts"

const style =
  "body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#0f1115;color:#fff}" +
  "main{max-width:60rem;margin:6vh auto 0;padding:0 1rem}" +
  "img{display:block;width:100%;height:auto;border-radius:12px}"

const policy =
  "default-src 'none'; img-src https: 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'; " +
  "base-uri 'none'; form-action 'none'"

interface Content {
  readonly title: string
  readonly image: string | undefined
  readonly tags: string
}

const pageOf = ({ image, tags, title }: Content): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title>` +
  `<meta name="viewport" content="width=device-width, initial-scale=1">${tags}` +
  `<style>${style}</style></head><body><main>` +
  (image === undefined ? "" : `<img alt="" src="${escapeHtml(image)}">`) +
  `<h1>${escapeHtml(title)}</h1></main></body></html>`

const html = (content: Content, status: number) =>
  HttpServerResponse.text(pageOf(content), {
    status,
    contentType: "text/html; charset=utf-8",
    headers: { "content-security-policy": policy, "referrer-policy": "no-referrer" }
  })

const unknownLink = html({ title: "This link is not known.", image: undefined, tags: "" }, 404)

const makePage = Effect.gen(function* () {
  const apps = yield* AppRepository
  const links = yield* ShareLinkRepository
  const tags = yield* makeTags
  return Effect.gen(function* () {
    const { id = "" } = yield* HttpRouter.params
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const link = yield* isShareId(id) ? links.environmentOf(id) : Effect.succeedNone
    if (Option.isNone(link)) return unknownLink
    const { environmentId } = link.value
    const app = yield* apps.byId(environmentId)
    if (Option.isNone(app)) return unknownLink
    const { projectName } = app.value
    const languages = languagesOf(headers["accept-language"])
    const built = yield* Effect.option(tags(environmentId, id, languages))
    if (Option.isNone(built)) return html({ title: projectName, image: undefined, tags: "" }, 200)
    const { image, html: elements, title } = built.value
    return html({ title, image, tags: elements }, 200)
  })
})

/** Route of the page. */
export const SharePage = Layer.unwrap(
  Effect.map(makePage, (page) => HttpRouter.add("GET", `${paths.shared}/:id`, page))
)
