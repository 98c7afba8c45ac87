/**
 * What the calls of the client reject with. An error of the service is an instance of its class in
 * `rpc/errors`, the same over HTTP and socket, and `_tag` is its code (spec section 7). The classes
 * here are for what the service cannot say: that it was not reached, or not understood.
 */
import { Data, SchemaIssue, type Schema } from "effect"
import type { Issue } from "#rpc/errors/codes"
import type { SignInError } from "#rpc/oauth/sign-in"

/** An error whose code this version of the client does not know: the service is newer. */
export class ServiceError extends Data.TaggedError("service_error")<{
  readonly code: string
  readonly message: string
  readonly details?: unknown
}> {}

/** The service could not be reached over HTTP; the call may be repeated. */
export class NetworkError extends Data.TaggedError("network_error")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/**
 * No answer within ten seconds; it is unknown whether the call was carried out. For a sign-in with a
 * provider: it was not ended within the ten minutes that it may take.
 */
export class TimedOut extends Data.TaggedError("timed_out")<{ readonly message: string }> {}

/** The socket closed before the reply came; `code` and `reason` are those of the close. */
export class Disconnected extends Data.TaggedError("disconnected")<{
  readonly code: number
  readonly reason: string
  readonly message: string
}> {}

/** No player is signed in, and guests are not created without being asked for. */
export class SignedOut extends Data.TaggedError("signed_out")<{ readonly message: string }> {}

/**
 * The browser did not let the window of a provider open: it does so only for a call right from a click
 * or a key. `mode: "redirect"` needs no window.
 */
export class PopupBlocked extends Data.TaggedError("popup_blocked")<{
  readonly message: string
}> {}

/** The player has closed the window of the provider. */
export class PopupClosed extends Data.TaggedError("popup_closed")<{ readonly message: string }> {}

/** The provider, or the return from it, has ended the sign-in; `access_denied`: the player declined. */
export class OAuthFailed extends Data.TaggedError("oauth_failed")<{
  readonly reason: SignInError
  readonly message: string
}> {}

/** Too many calls wait for their replies already. */
export class Overloaded extends Data.TaggedError("overloaded")<{ readonly message: string }> {}

/** What can befall every call, whatever it asks. */
export type LocalError =
  | ServiceError
  | NetworkError
  | TimedOut
  | Disconnected
  | SignedOut
  | PopupBlocked
  | PopupClosed
  | OAuthFailed
  | Overloaded

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The problems of a refused value, in the form of `details.issues`. */
export const issuesOf = (error: Schema.SchemaError): ReadonlyArray<typeof Issue.Type> =>
  format(error.issue).issues.map(({ message, path = [] }) => ({
    path: path.map((part) => String(typeof part === "object" ? part.key : part)).join("."),
    message
  }))
