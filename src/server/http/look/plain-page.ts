/** Pages of the service itself that run no script: their look, their policy and their response. */
import { HttpServerResponse } from "effect/http"
import { tokens } from "./tokens.ts"

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; " +
  "base-uri 'none'; form-action 'none'"

/** Responds with a page; `body` is HTML, and `style` adds to what all pages share. */
export const plainPage = (
  page: { readonly title: string; readonly style: string; readonly body: string },
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${page.title}</title>` +
      `<meta name="viewport" content="width=device-width"><style>${tokens}${page.style}</style>` +
      `</head><body>${page.body}</body></html>`,
    {
      status: options.status ?? 200,
      contentType: "text/html; charset=utf-8",
      headers: {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        ...options.headers
      }
    }
  )
