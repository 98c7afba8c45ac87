/** Bodies of responses and replies with the types of their definitions in `rpc/`. */
import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { at, type TestResponse } from "#testing/players"

const textOf = (value: unknown): string => JSON.stringify(value)

/** The body of a response, which must fit the schema of its endpoint, in its encoded form. */
export const bodyOf = <S extends Schema.Top>(
  schema: S,
  { body, status }: TestResponse
): S["Encoded"] => {
  const fits = Schema.is(Schema.toEncoded(schema))
  if (fits(body)) return body
  return assert.fail(`The body does not fit its schema: ${status} ${textOf(body)}`)
}

const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optional(Schema.Record(Schema.String, Schema.Unknown))
  })
})

const isErrorBody = Schema.is(ErrorBody)

/** The error of a response that must be one. */
export const errorOf = ({ body, status }: Pick<TestResponse, "body" | "status">) =>
  isErrorBody(body)
    ? body.error
    : assert.fail(`The response is no error: ${status} ${textOf(body)}`)

/** The error code of a response, or `ok`. */
export const codeOf = ({ body }: Pick<TestResponse, "body">): unknown =>
  at(body, "error", "code") ?? "ok"
