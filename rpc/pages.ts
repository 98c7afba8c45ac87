/** Query parameters of lists that are answered page by page. */
import { Schema } from "effect"
import { http } from "./limits.ts"

/** How many entries a page has at most. */
export const PageLimit = Schema.FiniteFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: http.pageMax })
)
