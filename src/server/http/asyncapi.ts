/** `GET /asyncapi.json`: the document of the socket, also committed in `rpc/asyncapi.json`. */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { asyncapiDocument } from "#rpc/asyncapi"
import { paths } from "#rpc/paths"

export const asyncapiText = (): string => `${JSON.stringify(asyncapiDocument(), null, 2)}\n`

/** Response, built on the first request to keep the start fast. */
let response: HttpServerResponse.HttpServerResponse | undefined

export const AsyncapiRoute = HttpRouter.add(
  "GET",
  paths.asyncapi,
  Effect.sync(() => {
    response ??= HttpServerResponse.text(asyncapiText(), { contentType: "application/json" })
    return response
  })
)
