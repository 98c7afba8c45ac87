/** The union of all errors of client calls, and its type guard. */
import type { LocalError } from "./errors.ts"
import type { Frame, FrameError } from "./frames.ts"
import type { HttpFailure } from "./http.ts"

/** Discriminated by `_tag`: the code of the service, or one of the client's own. */
export type ClientError = LocalError | FrameError<Frame> | HttpFailure

/**
 * Whether a caught error has this code; narrows its type, with `details`.
 *
 * @example
 * try {
 *   await client.rooms.join({ code: "7KMB2P" })
 * } catch (error) {
 *   if (isError(error, "room_full")) showFull()
 *   else if (isError(error, "already_in_room")) showOther(error.details.roomId)
 *   else throw error
 * }
 */
export const isError = <Code extends ClientError["_tag"]>(
  error: unknown,
  code: Code
): error is Extract<ClientError, { readonly _tag: Code }> =>
  error instanceof Error && "_tag" in error && error._tag === code
