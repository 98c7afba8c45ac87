/** Maps each failure of a call to an error of the API. */
import { Schema } from "effect"
import {
  type FeatureUnavailable,
  FunctionCpuExceeded,
  FunctionError,
  FunctionsSuspended,
  FunctionSubrequestsExceeded,
  type InvalidKey,
  type InvalidRequest,
  NotFound,
  type OriginNotAllowed,
  type PayloadTooLarge,
  type PlayerBanned,
  type SessionRevoked,
  type TokenExpired,
  type Unauthorized,
  toWire,
  Unavailable
} from "#rpc/errors/codes"
import { GateClosed } from "#server/platform/workerd/supervisor"
import { StartFailure } from "#server/platform/workerd/process"
import { brokenMessages, CallEnded } from "./call-end.ts"
import { DiskFailure } from "./disk.ts"
import { NotLive } from "./host.ts"
import { endMessages, UsedUp } from "./standing.ts"

/** Report of the entry point on a failed call. */
const Failed = Schema.Struct({ message: Schema.String, hasExceeded: Schema.Boolean })
const decodeFailed = Schema.decodeUnknownOption(Failed)

/** Parses JSON of a function; undefined if the text is not JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type CallError =
  | FunctionCpuExceeded
  | FunctionError
  | FunctionsSuspended
  | FunctionSubrequestsExceeded
  | NotFound
  | Unavailable

/** Returns the error of a call whose code threw an exception. */
export const thrownError = (body: unknown, isDevelopment: boolean): CallError => {
  const failed = decodeFailed(body)
  if (failed._tag === "None") return new FunctionError()
  const { hasExceeded, message } = failed.value
  if (hasExceeded) return new FunctionSubrequestsExceeded()
  return isDevelopment ? new FunctionError({ message }) : new FunctionError()
}

const endErrors = {
  budget: () => new FunctionCpuExceeded({ message: endMessages.budget }),
  cpu: () => new FunctionCpuExceeded(),
  memory: () => new FunctionCpuExceeded(),
  storage: () => new FunctionsSuspended({ message: endMessages.storage }),
  crash: () => new FunctionError({ message: "The process of the function has ended." }),
  broken: () => new FunctionError({ message: brokenMessages.broken }),
  malformed: () => new FunctionError({ message: brokenMessages.malformed }),
  noResponse: () => new FunctionError({ message: brokenMessages.noResponse }),
  late: () => new FunctionError({ message: "The function did not answer in time." }),
  stopped: () => new Unavailable()
} as const

/**
 * Returns the error of a call that did not begin or got no response; undefined for a fault of the
 * service.
 */
export const callError = (error: unknown): CallError | undefined => {
  if (error instanceof NotLive) {
    return error.kind === "suspended" ? new FunctionsSuspended() : new NotFound()
  }
  if (error instanceof DiskFailure) return new Unavailable({ message: error.message })
  if (error instanceof UsedUp) {
    // Work that has not begun may be tried again; it is not to blame.
    const { message } = error
    return error.limit === "cpu"
      ? new Unavailable({ message })
      : new FunctionsSuspended({ message })
  }
  if (error instanceof CallEnded) return endErrors[error.reason]()
  if (error instanceof GateClosed || error instanceof StartFailure) return new Unavailable()
  return undefined
}

/** Errors that a client may get instead of a function's own response. */
export type Sendable =
  | CallError
  | FeatureUnavailable
  | InvalidKey
  | InvalidRequest
  | OriginNotAllowed
  | PayloadTooLarge
  | PlayerBanned
  | SessionRevoked
  | TokenExpired
  | Unauthorized

const statuses: Readonly<Record<Sendable["_tag"], number>> = {
  feature_unavailable: 403,
  function_cpu_exceeded: 503,
  function_error: 500,
  function_subrequests_exceeded: 503,
  functions_suspended: 503,
  invalid_key: 401,
  invalid_request: 400,
  not_found: 404,
  origin_not_allowed: 403,
  payload_too_large: 413,
  player_banned: 403,
  session_revoked: 401,
  token_expired: 401,
  unauthorized: 401,
  unavailable: 503
}

/** Returns the status and the body of an error. */
export const errorResponse = (
  error: Sendable
): { readonly status: number; readonly body: string } => ({
  status: statuses[error._tag],
  body: JSON.stringify({ error: toWire(error) })
})
