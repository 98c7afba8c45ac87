/** Requests of developers in tests. */
import { Effect } from "effect"
import { type Answer, at, request } from "#testing/players"
import { addressOfNode } from "./http/stack.ts"

/** The code of a refusal, or `ok`. */
export const codeOf = ({ body }: Pick<Answer, "body">) => at(body, "error", "code") ?? "ok"

/** A request with what a developer's session carries. */
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
