/** Responses that endpoints of several features share. */
import { Schema } from "effect"

/** Response of a deletion. */
export const Deleted = Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
  identifier: "Deleted",
  description: "It is deleted."
})
