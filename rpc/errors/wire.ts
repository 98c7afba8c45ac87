/**
 * How an error class is made and how it looks on the wire. The `_tag` is the code, the HTTP status
 * stands on the class, and an instance flows untouched from the rule that raises it to the wire:
 * `{ error: { code, message, details? } }` over HTTP ({@link wire}), the same three fields as `error`
 * of a socket reply ({@link toWire}), the class itself over native RPC. Spec section 7.
 */
import { Effect, Schema, SchemaTransformation } from "effect"

const messageField = (text: string) =>
  Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed(text)))

/** An error class without details: code, HTTP status, default message. */
export const coded =
  <Self>() =>
  <const Code extends string>(code: Code, httpApiStatus: number, text: string) =>
    Schema.TaggedError<Self>()(code, { message: messageField(text) }, { httpApiStatus })

/** An error class whose `details` have the given fields. */
export const detailed =
  <Self>() =>
  <const Code extends string, const Details extends Schema.Struct.Fields>(
    code: Code,
    httpApiStatus: number,
    text: string,
    details: Details
  ) =>
    Schema.TaggedError<Self>()(
      code,
      { message: messageField(text), details: Schema.Struct(details) },
      { httpApiStatus }
    )

/** The body of every HTTP error, and the `error` field of a socket reply (spec section 7). */
export interface WireError {
  readonly code: string
  readonly message: string
  readonly details?: unknown
}

/** Any of the classes above, as far as the wire needs to know it. */
export interface CodedError {
  readonly _tag: string
  readonly message: string
  readonly details?: unknown
}

/** The three fields of the wire form of an error. */
export const toWire = (error: CodedError): WireError =>
  error.details === undefined
    ? { code: error._tag, message: error.message }
    : { code: error._tag, message: error.message, details: error.details }

const nest = <T, E>(
  inner: Schema.Codec<T, E>,
  identifier: string
): Schema.Codec<T, { readonly error: E }> =>
  Schema.Struct({ error: inner })
    .annotate({ identifier })
    .pipe(
      Schema.decodeTo(
        Schema.toType(inner),
        SchemaTransformation.transform({
          decode: (body) => body.error,
          encode: (error) => ({ error })
        })
      )
    )

class ErrorClass extends coded<ErrorClass>()("specimen", 500, "") {}

type ErrorCodec = Schema.Codec<ErrorClass, { readonly error: WireError }>

/** One codec a class, so that the OpenAPI document has one schema a code. */
const codecs = new WeakMap<typeof ErrorClass, ErrorCodec>()

/** The codec of an error class in its HTTP form `{ error: { code, message, details? } }`. */
export function wire<S extends Schema.Top & { readonly fields: Schema.Struct.Fields }>(
  self: S
): Schema.Codec<S["Type"], { readonly error: WireError }>
export function wire(self: typeof ErrorClass): ErrorCodec {
  const known = codecs.get(self)
  if (known !== undefined) return known
  const made = nest(self.pipe(Schema.encodeKeys({ _tag: "code" })), self.identifier)
  codecs.set(self, made)
  return made
}
