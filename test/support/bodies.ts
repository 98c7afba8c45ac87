/** Parts of the bodies of responses. */
import { at, type TestResponse } from "#testing/players"

/** The error code of a response, or `ok`. */
export const codeOf = ({ body }: Pick<TestResponse, "body">): unknown =>
  at(body, "error", "code") ?? "ok"
