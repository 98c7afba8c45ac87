/** Requests of developers in tests. */
import { Effect } from "effect"
import { at, request, type TestResponse } from "#testing/players"
import { addressOfNode } from "./http-stack.ts"

/** The error code of a response, or `ok`. */
export const codeOf = ({ body }: Pick<TestResponse, "body">) => at(body, "error", "code") ?? "ok"

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
