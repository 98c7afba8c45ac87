/** `GET /docs/api`: the reference of the API, one page that needs no other request. */
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { paths } from "#rpc/paths"
import { apiDocument } from "./document.ts"
import { pageText } from "./page.ts"
import { script, style } from "./style.ts"

const hashOf = (text: string): string =>
  `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** Content security policy: only the page's own style and script. */
const policy =
  `default-src 'none'; style-src ${hashOf(style)}; script-src ${hashOf(script)}; ` +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const headers = {
  "content-security-policy": policy,
  "content-type": "text/html; charset=utf-8",
  vary: "accept-encoding"
}

const compress = promisify(gzip)

/** Page of the API, built and compressed on the first request, to keep the start fast. */
export const ApiPage = Layer.unwrap(
  Effect.gen(function* () {
    const page = yield* Effect.cached(
      Effect.gen(function* () {
        const text = new TextEncoder().encode(pageText(apiDocument()))
        const compressed = yield* Effect.promise(() => compress(text))
        return {
          plain: HttpServerResponse.uint8Array(text, { headers }),
          small: HttpServerResponse.uint8Array(new Uint8Array(compressed), {
            headers: { ...headers, "content-encoding": "gzip" }
          })
        }
      })
    )
    return HttpRouter.add(
      "GET",
      paths.apiPage,
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const { plain, small } = yield* page
        return /\bgzip\b/.test(request.headers["accept-encoding"] ?? "") ? small : plain
      })
    )
  })
)
