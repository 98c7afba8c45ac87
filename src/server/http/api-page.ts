/** `GET /docs`: the reference of the API, rendered by Scalar from the OpenAPI document. */
import { Effect, Layer } from "effect"
import { HttpBody, HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { Api } from "#rpc/api"
import { paths } from "#rpc/paths"

/** Encodes the page once instead of for every response. */
const asBytes = HttpRouter.middleware((handler) =>
  Effect.map(handler, (response) => {
    const { body } = response
    return body._tag === "Uint8Array"
      ? HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
      : response
  })
)

/** Options of the API page; {@link HttpApiScalar.ScalarConfig} does not declare all that Scalar reads. */
const scalar = {
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: "never",
  hideClientButton: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  customCss: 'a[href="https://www.scalar.com"] { display: none }'
}

/** The page inlines Scalar's script, so it works offline. */
export const ApiPage = HttpApiScalar.layer(Api, { path: paths.docs, scalar }).pipe(
  Layer.provide(asBytes.layer)
)
