/** Requests of developers in tests. */
import { Effect } from "effect"
import { addressOfNode } from "./http-stack.ts"
import { requestTyped } from "./response-types.ts"

export { codeOf } from "./bodies.ts"

/** Sends a request with a developer's session token. */
export const ask = <const M extends string, const P extends string>(
  developer: { readonly headers: Readonly<Record<string, string>> },
  method: M,
  path: P,
  body?: unknown
) =>
  Effect.flatMap(addressOfNode, (url) =>
    requestTyped(url, method, path, { headers: developer.headers, body })
  )
