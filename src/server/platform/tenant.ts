/**
 * Tenant of a fiber: the key by which shared bounds are divided. It is the environment of the request,
 * else its developer. Callers without either share one key.
 */
import { Context, Effect, type Fiber } from "effect"
import { HttpServerRequest } from "effect/http"
import { CurrentDeveloper, CurrentEnvironment } from "#rpc/auth"

/** Sets the tenant of work that runs outside a request of the environment. */
export const Tenant = Context.Reference<string | undefined>("server/platform/tenant/Tenant", {
  defaultValue: () => undefined
})

/** The share of requests whose caller is not known (yet). */
export const strangers = "strangers"

/** The tenant of a fiber; undefined for the service's own work. */
export const tenantOf = (fiber: Fiber.Fiber<unknown, unknown>): string | undefined => {
  const set = fiber.getRef(Tenant)
  if (set !== undefined) return set
  const { context } = fiber
  const environment = Context.getOrUndefined(context, CurrentEnvironment)
  if (environment !== undefined) return environment.environmentId
  const developer = Context.getOrUndefined(context, CurrentDeveloper)
  if (developer !== undefined) return developer.developerId
  const request = Context.getOrUndefined(context, HttpServerRequest.HttpServerRequest)
  return request === undefined ? undefined : strangers
}

/** The tenant of the current fiber. */
export const currentTenant = Effect.withFiber((fiber) => Effect.succeed(tenantOf(fiber)))
