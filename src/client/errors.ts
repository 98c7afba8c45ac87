/**
 * Errors of the client. An error of the service is an instance of its class in `rpc/errors`, the same
 * over HTTP and socket; `code` and `_tag` are its code. The classes here cover calls that got no usable
 * reply.
 */
import { Data, SchemaIssue, type Schema } from "effect"
import type { Issue } from "#rpc/errors/codes"
import type { SignInError } from "#rpc/oauth/sign-in"

/** The service answered with a code that this client version does not know. Update the client. */
export class ServiceError extends Data.TaggedError("service_error")<{
  readonly code: string
  readonly message: string
  readonly details?: unknown
}> {}

/** The service could not be reached over HTTP. Retry the call. */
export class NetworkError extends Data.TaggedError("network_error")<{
  readonly message: string
  readonly cause?: unknown
}> {
  readonly code = "network_error"
}

/**
 * No reply within ten seconds; the service may have executed the call. For an OAuth sign-in: not
 * finished within ten minutes.
 */
export class TimedOut extends Data.TaggedError("timed_out")<{ readonly message: string }> {
  readonly code = "timed_out"
}

/**
 * The socket closed before the reply; `closeCode` and `reason` say why. The service may have executed
 * the call.
 */
export class Disconnected extends Data.TaggedError("disconnected")<{
  readonly closeCode: number
  readonly reason: string
  readonly message: string
}> {
  readonly code = "disconnected"
}

/** No player is signed in, and guests are not created implicitly. Sign in first. */
export class SignedOut extends Data.TaggedError("signed_out")<{ readonly message: string }> {
  readonly code = "signed_out"
}

/**
 * The browser blocked the provider's popup. Call from a click or key handler, or use `mode:
 * "redirect"`.
 */
export class PopupBlocked extends Data.TaggedError("popup_blocked")<{
  readonly message: string
}> {
  readonly code = "popup_blocked"
}

/** The player closed the provider's popup. */
export class PopupClosed extends Data.TaggedError("popup_closed")<{ readonly message: string }> {
  readonly code = "popup_closed"
}

/** The provider or the service refused the sign-in; `access_denied`: the player declined. */
export class OAuthFailed extends Data.TaggedError("oauth_failed")<{
  readonly reason: SignInError
  readonly message: string
}> {
  readonly code = "oauth_failed"
}

/** Too many calls are waiting for replies. Wait for some of them. */
export class Overloaded extends Data.TaggedError("overloaded")<{ readonly message: string }> {
  readonly code = "overloaded"
}

/** Errors that any call can reject with. */
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

/** Formats a schema error as `details.issues`. */
export const issuesOf = (error: Schema.SchemaError): ReadonlyArray<typeof Issue.Type> =>
  format(error.issue).issues.map(({ message, path = [] }) => ({
    path: path.map((part) => String(typeof part === "object" ? part.key : part)).join("."),
    message
  }))
