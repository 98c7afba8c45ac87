/** Requests of developers in tests. */
import { Effect } from "effect"
import { request } from "#testing/players"
import { addressOfNode } from "./http-stack.ts"

export { codeOf } from "./bodies.ts"

/** Sends a request with a developer's session token. */
export const ask = (
  developer: { readonly headers: Readonly<Record<string, string>> },
  method: string,
  path: string,
  body?: unknown
) =>
  Effect.flatMap(addressOfNode, (url) =>
    request(`${url}${path}`, {
      method,
      headers: developer.headers,
      ...(body === undefined ? {} : { body })
    })
  )
