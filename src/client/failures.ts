/** The union of all errors of client calls, and its type guard. */
import type { LocalError } from "./errors.ts"
import type { Frame, FrameError } from "./frames.ts"
import type { HttpFailure } from "./http.ts"

/** Discriminated by `_tag`: the code of the service, or one of the client's own. */
export type ClientError = LocalError | FrameError<Frame> | HttpFailure

/** An error of the client with this code, or any. */
type WithCode<Code> = Extract<ClientError, { readonly _tag: Code }>

/**
 * Whether a caught error is one of the client, with this code if one is given; narrows its type, with
 * `code` and `details`.
 *
 * @example
 * try {
 *   await client.rooms.join({ code: "7KMB2P" })
 * } catch (error) {
 *   if (isError(error, "room_full")) showFull()
 *   else if (isError(error, "already_in_room")) showOther(error.details.roomId)
 *   else if (isError(error)) show(error.code, error.message)
 *   else throw error
 * }
 */
export const isError = <Code extends ClientError["_tag"] = ClientError["_tag"]>(
  error: unknown,
  code?: Code
): error is WithCode<Code> =>
  error instanceof Error &&
  "_tag" in error &&
  "code" in error &&
  (code === undefined || error._tag === code)
