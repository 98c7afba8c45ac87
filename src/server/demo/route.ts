/** `GET /demo`: leads to the demo games. Only browsers on this machine get there, and not in production. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NotFound } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { errorResponse } from "../http/errors.ts"
import { isLocalRequest } from "../http/local-request.ts"
import { demoAddress } from "./games.ts"

export const DemoPage = Layer.unwrap(
  Effect.gen(function* () {
    const address = yield* demoAddress
    if (address === undefined) return Layer.empty
    const redirect = HttpServerResponse.redirect(address)
    return HttpRouter.add(
      "GET",
      paths.demo,
      Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
        isLocalRequest(request) ? redirect : errorResponse(NotFound, new NotFound())
      )
    )
  })
)
