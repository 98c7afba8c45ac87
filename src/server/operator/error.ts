/** The reason for which an act of the operator fails, as the operator reads it. */
import { Data } from "effect"

export class OperatorError extends Data.TaggedError("OperatorError")<{
  readonly message: string
}> {}
