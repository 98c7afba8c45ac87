/** Query parameters of lists that are answered page by page. */
import { Schema, SchemaTransformation } from "effect"
import { http } from "./limits.ts"

/**
 * Integer in a query, from `minimum` to `maximum`. The format names the bounds, from which the OpenAPI
 * document makes an integer.
 */
export const integerText = (minimum: number, maximum: number) =>
  Schema.String.annotate({ format: `integer ${minimum} ${maximum}` }).pipe(
    Schema.decodeTo(
      Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum, maximum })),
      SchemaTransformation.numberFromString
    )
  )

/** Maximum number of entries of a page. */
export const PageLimit = integerText(1, http.pageMax)
