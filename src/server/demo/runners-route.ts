/**
 * `GET /demo/runners` and `POST /demo/kill-runner`, for the button of the arena that kills the runner of a
 * room. Both answer this machine only, without an origin or with that of the demo games, and not in
 * production. The second exists only with two runners.
 */
import { Effect, Layer, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { InvalidRequest, NotFound } from "#rpc/errors/codes"
import { RoomId } from "#rpc/ids"
import { invalidField } from "../platform/invalid-request.ts"
import { errorResponse } from "../http/errors.ts"
import { isLocalRequest } from "../http/local-request.ts"
import { demoAddress } from "./games.ts"
import { KillRunnerOf } from "./two-runners.ts"

const runnersPath = "/demo/runners"
const killRunnerPath = "/demo/kill-runner"

const decodeBody = Schema.decodeOption(Schema.fromJsonString(Schema.Struct({ roomId: RoomId })))

const notFound = errorResponse(NotFound, new NotFound())

const invalidBody = errorResponse(
  InvalidRequest,
  invalidField("roomId", 'Send the id of a room: {"roomId":"rm_..."}')
)

/** Answers a local request of the demo games or of a program; other requests get 404. */
const locally = <E, R>(
  origin: string,
  handler: (
    request: HttpServerRequest.HttpServerRequest
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    isLocalRequest(request, origin) ? handler(request) : Effect.succeed(notFound)
  )

/** The routes; there are no demo games in production. */
export const DemoRunners = Layer.unwrap(
  Effect.gen(function* () {
    const address = yield* demoAddress
    if (address === undefined) return Layer.empty
    const { origin } = new URL(address)
    const kill = yield* KillRunnerOf
    const count = HttpServerResponse.jsonUnsafe({ runners: kill === undefined ? 1 : 2 })
    const runners = HttpRouter.add(
      "GET",
      runnersPath,
      locally(origin, () => Effect.succeed(count))
    )
    if (kill === undefined) return runners
    const accepted = HttpServerResponse.empty({ status: 202 })
    const killRunner = locally(origin, (request) =>
      Effect.map(request.text, (text) => {
        const body = decodeBody(text)
        if (Option.isNone(body)) return invalidBody
        kill(body.value.roomId)
        return accepted
      })
    )
    return Layer.merge(runners, HttpRouter.add("POST", killRunnerPath, killRunner))
  })
)
