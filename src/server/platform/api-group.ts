/**
 * Handlers of a group of endpoints. They take their services when they are built, so a request needs none.
 * `HttpApiBuilder` would copy all services of the process into the context of each request.
 */
import { Context, Effect, Layer } from "effect"
import {
  HttpApi,
  HttpApiBuilder,
  type HttpApiEndpoint,
  type HttpApiGroup,
  type HttpApiMiddleware
} from "effect/http-api"
import type { Api } from "#rpc/api"
import type { InProcessApi } from "#rpc/in-process"

type GroupsOf<A> = A extends HttpApi.HttpApi<infer _, infer Groups> ? Groups : never
type Group = GroupsOf<typeof Api> | GroupsOf<typeof InProcessApi>
type EndpointsOf<G extends Group["identifier"]> = HttpApiGroup.Endpoints<
  Extract<Group, { readonly identifier: G }>
>

/**
 * The request of an endpoint, for handlers that several groups mount. It is that of one of them: the
 * others' requests have more.
 */
export type RequestOf<
  G extends Group["identifier"],
  Name extends EndpointsOf<G>["identifier"]
> = Omit<
  HttpApiEndpoint.Request<Extract<EndpointsOf<G>, { readonly identifier: Name }>>,
  "endpoint" | "group"
> & { readonly endpoint: HttpApiEndpoint.Top }

/** The middleware of the endpoints of a group. */
const middlewareOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  name: string
): ReadonlyArray<HttpApiMiddleware.AnyService> => {
  const found = new Set<HttpApiMiddleware.AnyService>()
  HttpApi.reflect(api, {
    predicate: ({ group }) => group.identifier === name,
    onGroup: () => undefined,
    onEndpoint: ({ middleware }) => middleware.forEach((each) => found.add(each))
  })
  return [...found]
}

/**
 * Variant of `HttpApiBuilder.group`. The middleware of the endpoints is all that requests get from
 * layers.
 */
export const apiGroup: typeof HttpApiBuilder.group = (api, name, build) => {
  const middleware = middlewareOf(api, name)
  return Layer.unwrap(
    Effect.contextWith((services: Context.Context<never>) => {
      const provided = <A>(built: A): A =>
        Effect.isEffect(built) ? (Effect.provideContext(built, services) as A) : built
      const layer = HttpApiBuilder.group(api, name, (handlers) => provided(build(handlers)))
      return Effect.succeed(
        Layer.fromBuild((memoMap, scope) =>
          Effect.updateContext(Layer.buildWithMemoMap(layer, memoMap, scope), (context) =>
            Context.pick(...middleware)(context)
          )
        )
      )
    })
  )
}

/** Builds the handlers of an operation once, for all groups that mount it. */
export const mounted = <
  H,
  E,
  R,
  L extends [Layer.Layer<never, unknown, unknown>, ...Array<Layer.Layer<never, unknown, unknown>>]
>(
  make: Effect.Effect<H, E, R>,
  groupsOf: (handlers: H) => L
) => Layer.unwrap(Effect.map(make, (handlers) => Layer.mergeAll(...groupsOf(handlers))))
