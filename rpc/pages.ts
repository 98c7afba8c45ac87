/** Query parameters of lists that are answered page by page. */
import { Schema } from "effect"
import { http } from "./limits.ts"

/** Maximum number of entries of a page. */
export const PageLimit = Schema.FiniteFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: http.pageMax })
)
