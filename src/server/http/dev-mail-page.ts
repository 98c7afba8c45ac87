/**
 * `GET /dev/mail`: the mails that development stores when there is no `SMTP_URL`. The page does not exist
 * in production or with a mail server. Only browsers on this machine can read it, not other machines, not
 * through a reverse proxy, and not pages of other origins.
 */
import { DateTime, Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { NotFound } from "#rpc/errors/codes"
import { devMailPath, type StoredMail, Mailer } from "#server/platform/mail/outbox"
import { escapeHtml } from "#server/platform/mail/templates"
import { Settings } from "#server/platform/settings/settings"
import { errorResponse } from "./errors.ts"
import { isLocalRequest } from "./local-request.ts"
import { plainPage } from "./look/plain-page.ts"

const style =
  "body{max-width:48rem;margin:3rem auto;padding:0 1rem}" +
  "article{border-top:1px solid var(--line);padding:1rem 0}" +
  "pre{white-space:pre-wrap;word-break:break-all}" +
  // Mails are made for a light page.
  "iframe{width:100%;height:16rem;border:1px solid var(--line);background:#fff;color-scheme:light}"

const linkForm = /\b[a-z][a-z0-9+.-]*:\/\/\S+/i

/** The text as HTML, with its link as an anchor. */
const linked = (text: string): string => {
  const [link = ""] = linkForm.exec(text) ?? []
  const at = link === "" ? text.length : text.indexOf(link)
  const shown = escapeHtml(link)
  return (
    escapeHtml(text.slice(0, at)) +
    (link === "" ? "" : `<a href="${shown}" rel="noreferrer">${shown}</a>`) +
    escapeHtml(text.slice(at + link.length))
  )
}

const articleOf = ({ createdAt, html, subject, text, to }: StoredMail): string =>
  `<article><h2>${escapeHtml(subject)}</h2>` +
  `<p>To ${escapeHtml(to)}, ${escapeHtml(DateTime.formatIso(createdAt))}</p>` +
  `<pre>${linked(text)}</pre>` +
  `<details><summary>As HTML</summary>` +
  `<iframe sandbox srcdoc="${escapeHtml(html)}" title="The mail"></iframe></details></article>`

const pageOf = (mails: ReadonlyArray<StoredMail>) =>
  plainPage({
    title: "Mail",
    style,
    body: `<h1>Mail</h1>${mails.map(articleOf).join("") || "<p>There is none yet.</p>"}`
  })

const makePage = Effect.gen(function* () {
  const mailer = yield* Mailer
  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (!isLocalRequest(request)) return errorResponse(NotFound, new NotFound())
    return pageOf(yield* mailer.stored)
  })
})

/** The route, only in development without a mail server. */
export const DevMailPage = Layer.unwrap(
  Effect.gen(function* () {
    const { mail, production } = yield* Settings
    if (production || mail.smtpUrl !== undefined) return Layer.empty
    return HttpRouter.add("GET", devMailPath, yield* makePage)
  })
)
