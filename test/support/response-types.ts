/**
 * Types of responses by method and path, from the definitions in `rpc/`: a test reads `body.player.id`, and
 * a misspelled field does not compile. A refusal is read with `codeOf` and `detailsOf` of `players.ts`.
 */
import type { Brand, Effect } from "effect"
import type { HttpApi, HttpApiGroup } from "effect/http-api"
import type { Api } from "#rpc/api"
import type { DashboardApi } from "#rpc/dashboard"
import { request, type TestResponse } from "#testing/players"

type GroupsOf<A> = A extends HttpApi.HttpApi<infer _, infer Groups> ? Groups : never
type Endpoint = HttpApiGroup.Endpoints<GroupsOf<typeof Api> | GroupsOf<typeof DashboardApi>>

type WithoutQuery<P extends string> = P extends `${infer Path}?${string}` ? Path : P
type WithoutSlash<P extends string> = P extends `${infer Path}/` ? Path : P

/** The parts of a path. A parameter, such as `:key`, matches any part. */
type PartsOf<P extends string> = P extends `${infer First}/${infer Rest}`
  ? [PartOf<First>, ...PartsOf<Rest>]
  : [PartOf<P>]
type PartOf<P extends string> = P extends `:${string}` ? string : P

type Route<E> = E extends {
  readonly method: infer M extends string
  readonly path: infer P extends string
  readonly "~Success": { readonly Type: infer Body }
}
  ? {
      readonly key: `${M} ${WithoutSlash<P>}`
      readonly parts: [M, ...PartsOf<WithoutSlash<P>>]
      readonly body: Plain<Body>
    }
  : never
type Routes = Route<Endpoint>

type Exact<R, K> = R extends { readonly key: infer Key; readonly body: infer Body }
  ? K extends Key
    ? Body
    : never
  : never
type Matching<R, Parts> = R extends {
  readonly parts: infer Pattern
  readonly body: infer Body
}
  ? Parts extends Pattern
    ? Body
    : never
  : never

/** Ids are plain strings on the wire. */
type Plain<T> =
  T extends Brand.Brand<string> ? string : T extends object ? { [K in keyof T]: Plain<T[K]> } : T

/** `never` says that no endpoint has the path: such a body has no type. */
type OrUnknown<Body> = [Body] extends [never] ? unknown : Body

/** An endpoint without parameters in its path comes first. */
type BodyAt<M extends string, P extends string> = [Exact<Routes, `${M} ${P}`>] extends [never]
  ? OrUnknown<Matching<Routes, [M, ...PartsOf<P>]>>
  : Exact<Routes, `${M} ${P}`>

/**
 * The body of a successful response, whose values have the same form on the wire as in the definitions;
 * unknown where the path is not known when the test compiles. */
export type BodyOf<M extends string, P extends string> = string extends M
  ? unknown
  : string extends P
    ? unknown
    : BodyAt<M, WithoutSlash<WithoutQuery<P>>>

interface TypedResponse<Body> extends TestResponse {
  readonly body: Body
}

/** A response of the endpoint with this method and path. */
export type ResponseTo<M extends string, P extends string> = TypedResponse<BodyOf<M, P>>

/** Sends a request; its response has the type of the endpoint with this method and path. */
export const requestTyped = <const M extends string, const P extends string>(
  url: string,
  method: M,
  path: P,
  { body, headers }: { readonly headers: Readonly<Record<string, string>>; readonly body?: unknown }
) =>
  request(`${url}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body })
  }) as Effect.Effect<ResponseTo<M, P>>
