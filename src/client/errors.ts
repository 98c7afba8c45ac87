/**
 * Errors of client calls. There is one class: `code` says what happened, and `details` has the facts of
 * that code. Codes of the service are the same over HTTP and socket; those of {@link LocalDetails} are
 * the client's own.
 */
import type { ErrorDetails as ServiceDetails, SignInError } from "./wire.ts"

/** The client's own codes, for calls that got no usable reply. */
export interface LocalDetails {
  /** The client could not reach the service over HTTP. Check the connection, then call again. */
  readonly network_error: undefined
  /**
   * Timeout: no reply within ten seconds (a function: thirty), or no finished OAuth sign-in within ten minutes. The
   * service may have executed the call.
   */
  readonly timed_out: undefined
  /** The signal of the call was aborted. The client leaves the room that the call may have entered. */
  readonly aborted: undefined
  /** The socket closed before the reply. The service may have executed the call. */
  readonly disconnected: { readonly closeCode: number; readonly reason: string }
  /** No player is signed in, and the client creates no guests implicitly. Sign in first. */
  readonly signed_out: undefined
  /** The browser blocked the popup. Call from a click handler, or use `mode: "redirect"`. */
  readonly popup_blocked: undefined
  /** The player closed the popup. Offer the sign-in again. */
  readonly popup_closed: undefined
  /** The provider or the service refused the sign-in; `access_denied`: the player declined. */
  readonly oauth_failed: { readonly reason: SignInError }
  /** Too many calls are waiting for replies, or too many saves for a connection. Await some of them. */
  readonly overloaded: undefined
  /** A function answered with a status other than 2xx, and no error in the form of the service. */
  readonly function_refused: { readonly status: number; readonly body: unknown }
  /** The page may not use a microphone, since it is not from `https:` or `localhost`. */
  readonly microphone_unavailable: undefined
  /** The response is not what this version of the client expects. Check `baseUrl`, then update the client. */
  readonly unreadable_response: undefined
}

/** Details of each code; undefined for a code without any. */
export interface ErrorDetails extends ServiceDetails, LocalDetails {}

/** A code of the service or of the client. A newer service may send further codes. */
export type ErrorCode = keyof ErrorDetails

/** The error with which a call of the client rejects. */
export class ClientError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: Code
  readonly details: ErrorDetails[Code]

  constructor(code: Code, message: string, details?: ErrorDetails[Code], cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = "ClientError"
    this.code = code
    this.details = details as ErrorDetails[Code]
  }

  /** The code, under the name by which programs on Effect match errors. */
  get _tag(): Code {
    return this.code
  }
}

/** Any error of the client, discriminated by `code`. */
export type AnyClientError = { [Code in ErrorCode]: ClientError<Code> }[ErrorCode]

/**
 * Returns whether a caught error is one of the client, with this code if one is given. It narrows
 * the type, with `code` and `details`.
 *
 * @example
 * try {
 *   await client.rooms.join("7KMB2P")
 * } catch (error) {
 *   if (isError(error, "room_full")) showFull()
 *   else if (isError(error, "already_in_room")) showOther(error.details.roomId)
 *   else if (isError(error)) show(error.code, error.message)
 *   else throw error
 * }
 */
export function isError(error: unknown): error is AnyClientError
export function isError<Code extends ErrorCode>(
  error: unknown,
  code: Code
): error is ClientError<Code>
export function isError(error: unknown, code?: ErrorCode): boolean {
  return (
    error instanceof Error &&
    error.name === "ClientError" &&
    (code === undefined || codeOf(error) === code)
  )
}

/** The code of any caught error; undefined for errors of others. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error ? String(error.code) : undefined

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The error of the service, of a code that this version may not know; undefined if the value is none. */
export const fromWire = (value: unknown): ClientError | undefined => {
  if (!isRecord(value)) return undefined
  const { code, details, message } = value
  return typeof code === "string" && typeof message === "string"
    ? new ClientError(code as ErrorCode, message, details as ErrorDetails[ErrorCode])
    : undefined
}

/** Serializes a value, or throws what the service would answer to one that is no JSON. */
export const jsonText = (code: "invalid_frame" | "invalid_request", value: unknown): string => {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    const message = `The data is not JSON: ${String(cause)}`
    throw new ClientError(code, message, { issues: [{ path: "", message }] }, cause)
  }
}
