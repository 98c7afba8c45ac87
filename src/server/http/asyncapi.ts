/** `GET /asyncapi.json`: the document of the socket, also committed in `rpc/asyncapi.json`. */
import { HttpRouter, HttpServerResponse } from "effect/http"
import { asyncapiDocument } from "#rpc/asyncapi"
import { paths } from "#rpc/paths"

export const asyncapiText = (): string => `${JSON.stringify(asyncapiDocument(), null, 2)}\n`

export const AsyncapiRoute = HttpRouter.add(
  "GET",
  paths.asyncapi,
  HttpServerResponse.text(asyncapiText(), { contentType: "application/json" })
)
