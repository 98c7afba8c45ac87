/**
 * Error classes and their wire form. The `_tag` is the code, and the class carries the HTTP status.
 * Over HTTP the wire form is `{ error: { code, message, details? } }` ({@link wire}). A socket
 * reply has the inner object as its `error` ({@link toWire}), and native RPC carries the class
 * itself.
 */
import { Effect, Schema, SchemaAST, SchemaTransformation } from "effect"

const messageField = (text: string) =>
  Schema.String.annotate({ examples: [text] }).pipe(
    Schema.withConstructorDefault(Effect.succeed(text))
  )

/** Defines `code` on the instances of an error class: the same as `_tag`, the name of the wire. */
const withCode = <A>(errorClass: A, code: string): A => {
  Object.defineProperty(Object(errorClass).prototype, "code", { value: code })
  return errorClass
}

/** Makes an error class without details: code, HTTP status, default message. */
export const coded =
  <Self>() =>
  <const Code extends string>(code: Code, httpApiStatus: number, text: string) =>
    withCode(
      Schema.TaggedError<Self, { readonly code: Code }>()(
        code,
        { message: messageField(text) },
        { httpApiStatus, description: text }
      ),
      code
    )

/** Makes an error class with `details` of the given fields. */
export const detailed =
  <Self>() =>
  <const Code extends string, const Details extends Schema.Struct.Fields>(
    code: Code,
    httpApiStatus: number,
    text: string,
    details: Details
  ) =>
    withCode(
      Schema.TaggedError<Self, { readonly code: Code }>()(
        code,
        { message: messageField(text), details: Schema.Struct(details) },
        { httpApiStatus, description: text }
      ),
      code
    )

/** The `error` object of an HTTP body and of a socket reply. */
export const WireError = Schema.Struct({
  code: Schema.String,
  message: Schema.String,
  details: Schema.optionalKey(Schema.Unknown)
})
export type WireError = typeof WireError.Type

/** The fields of any error class that the wire form needs. */
export interface CodedError {
  readonly _tag: string
  readonly message: string
  readonly details?: unknown
}

/** Encodes an error as its wire form. */
export const toWire = (error: CodedError): WireError =>
  error.details === undefined
    ? { code: error._tag, message: error.message }
    : { code: error._tag, message: error.message, details: error.details }

const declaredStatus = SchemaAST.resolveAt<number>("httpApiStatus")

/** The HTTP status that the class of an error declares. */
export const statusOf = (error: CodedError): number => {
  const made: unknown = error.constructor
  return (Schema.isSchema(made) ? declaredStatus(made.ast) : undefined) ?? 500
}

/** Decodes an error from its wire form. */
export const fromWire = ({ code, message, ...details }: WireError): CodedError => ({
  _tag: code,
  message,
  ...details
})

const nest = <T, E>(
  inner: Schema.Codec<T, E>,
  identifier: string,
  description: string
): Schema.Codec<T, { readonly error: E }> =>
  Schema.Struct({ error: inner })
    .annotate({ identifier, description })
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

const describedAs = ({ annotations }: SchemaAST.AST): string => {
  const description = annotations?.["description"]
  return typeof description === "string" ? description : ""
}

/** One codec for each class, so that the OpenAPI document has one schema for each code. */
const codecs = new WeakMap<typeof ErrorClass, ErrorCodec>()

/** Returns the codec of an error class in its HTTP form. */
export function wire<S extends Schema.Top & { readonly fields: Schema.Struct.Fields }>(
  self: S
): Schema.Codec<S["Type"], { readonly error: WireError }>
export function wire(self: typeof ErrorClass): ErrorCodec {
  const known = codecs.get(self)
  if (known !== undefined) return known
  const made = nest(
    self.pipe(Schema.encodeKeys({ _tag: "code" })),
    self.identifier,
    describedAs(self.ast)
  )
  codecs.set(self, made)
  return made
}
