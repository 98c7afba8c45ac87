/**
 * Server API of an environment for its own functions: the binding `svc`. The service authorises each
 * call by the environment of the function, so its code needs no secret key. A call runs the endpoint in
 * the process.
 */
import { Effect, Layer, Option, Schema } from "effect"
import { type CodedError, NotFound, toWire, Unavailable } from "#rpc/errors/codes"
import { statusOf } from "#rpc/errors/wire"
import type { EnvironmentId } from "#rpc/ids"
import { AppRepository } from "#sql/hosting/apps"
import { InProcess } from "#server/platform/in-process"
import { Tenant } from "#server/platform/tenant"
import { FunctionsServerApi, type ServerCall, type ServerReply } from "./control-plane.ts"

const isMethod = Schema.is(Schema.Literals(["DELETE", "GET", "PATCH", "POST", "PUT"]))

/** Returns the reply for an error, with the status of its class. */
const refusal = (error: CodedError): ServerReply => ({
  status: statusOf(error),
  body: Buffer.from(JSON.stringify({ error: toWire(error) }))
})

/** Actor of functions in the audit log. */
const actor = { kind: "system", id: "functions", name: "functions" } as const

export const FunctionsServerApiLive = Layer.effect(
  FunctionsServerApi,
  Effect.gen(function* () {
    const apps = yield* AppRepository
    const inProcess = yield* InProcess
    const respond = Effect.fnUntraced(function* (
      environmentId: EnvironmentId,
      { body, method, path }: ServerCall
    ) {
      const app = Option.getOrUndefined(yield* apps.byId(environmentId))
      if (app === undefined || !isMethod(method)) return refusal(new NotFound())
      const { name, projectId } = app
      const environment = { environmentId, projectId, name }
      const caller = { environment, actor, door: "functions" } as const
      const call = { method, path, ...(body.length === 0 ? {} : { body }) }
      return yield* inProcess.call(caller, call)
    })
    return FunctionsServerApi.of({
      call: Effect.fn("FunctionsServerApi.call")((environmentId, call) =>
        respond(environmentId, call).pipe(
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
