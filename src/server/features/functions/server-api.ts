/**
 * Server API of an environment for its own functions: the binding `svc`. The service authorises each
 * call by the environment of the function, so its code needs no secret key.
 */
import { Effect, Layer, Option } from "effect"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { type CodedError, NotFound, toWire, Unavailable } from "#rpc/errors/codes"
import { statusOf } from "#rpc/errors/wire"
import type { EnvironmentId } from "#rpc/ids"
import { AppRepository } from "#sql/hosting/apps"
import { Tenant } from "#server/platform/tenant"
import { makeServerRoutes, type ServerRoute } from "./server-routes.ts"
import { FunctionsServerApi, type ServerCall, type ServerReply } from "./control-plane.ts"

const encoder = new TextEncoder()

const reply = (status: number, value: unknown): ServerReply => ({
  status,
  body: encoder.encode(JSON.stringify(value))
})

/** Returns the reply for an error, with the status of its class. */
const refusal = (error: CodedError): ServerReply => reply(statusOf(error), { error: toWire(error) })

/** Returns the segments of a path below `/v1/admin`; undefined if their URL encoding is invalid. */
const segmentsOf = (path: string): ReadonlyArray<string> | undefined => {
  try {
    return path.split("/").filter(Boolean).map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/** Returns the parameters of a path if it matches the route. */
const match = (
  { method, path }: ServerRoute,
  call: string,
  segments: ReadonlyArray<string>
): ReadonlyArray<string> | undefined => {
  const form = path.split("/")
  if (method !== call || form.length !== segments.length) return undefined
  const fits = form.every((part, index) => part === ":" || part === segments[index])
  return fits ? segments.filter((_, index) => form[index] === ":") : undefined
}

/** Actor of functions in the audit log. */
const actor = { kind: "system", id: "functions", name: "functions" } as const

export const FunctionsServerApiLive = Layer.effect(
  FunctionsServerApi,
  Effect.gen(function* () {
    const apps = yield* AppRepository
    const routes = yield* makeServerRoutes
    const answer = Effect.fnUntraced(function* (
      environmentId: EnvironmentId,
      { body, method, path }: ServerCall
    ) {
      const app = Option.getOrUndefined(yield* apps.byId(environmentId))
      const [pathname = "", query = ""] = path.split("?", 2)
      const segments = segmentsOf(pathname)
      if (app === undefined || segments === undefined) return yield* new NotFound()
      for (const route of routes) {
        const params = match(route, method, segments)
        if (params === undefined) continue
        const { name, projectId } = app
        const input = {
          params,
          query: Object.fromEntries(new URLSearchParams(query)),
          body: Buffer.from(body).toString("utf8")
        }
        return yield* route
          .answer(input)
          .pipe(
            Effect.provideService(CurrentEnvironment, { environmentId, projectId, name }),
            Effect.provideService(CurrentActor, actor)
          )
      }
      return yield* new NotFound()
    })
    return FunctionsServerApi.of({
      call: Effect.fn("FunctionsServerApi.call")((environmentId, call) =>
        answer(environmentId, call).pipe(
          Effect.map((value) => reply(200, value)),
          Effect.catch((error) => Effect.succeed(refusal(error))),
          Effect.catchDefect((defect) =>
            Effect.as(
              Effect.logError("Failed to handle a call from a function", defect),
              refusal(new Unavailable())
            )
          ),
          Effect.provideService(Tenant, environmentId)
        )
      )
    })
  })
)
