/** Errors that any request can meet: shape, size, rate limits and faults. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/** One problem of a request or document: its path (`modes[0].maxPlayers`) and message. */
export const Issue = Schema.Struct({ path: Schema.String, message: Schema.String })
export type Issue = typeof Issue.Type

/** The request does not have the shape of the endpoint. Correct the fields in `issues`. */
export class InvalidRequest extends detailed<InvalidRequest>()(
  "invalid_request",
  400,
  "The request is not valid.",
  { issues: Schema.Array(Issue) }
) {}

/** The body is not valid JSON in UTF-8. */
export class InvalidJson extends coded<InvalidJson>()(
  "invalid_json",
  400,
  "The request body is not valid JSON in UTF-8."
) {}

/**
 * The path, or the resource of the caller, does not exist. The response never reveals whether
 * others have it.
 */
export class NotFound extends coded<NotFound>()("not_found", 404, "Not found.") {}

/** The path exists, but not with this method. The `Allow` header lists its methods. */
export class MethodNotAllowed extends coded<MethodNotAllowed>()(
  "method_not_allowed",
  405,
  "This path does not support this method."
) {}

/** The body, or a field with a size limit, is too large. `limit` is in bytes. */
export class PayloadTooLarge extends detailed<PayloadTooLarge>()(
  "payload_too_large",
  413,
  "The payload is too large.",
  { limit: Schema.Finite }
) {}

/** The `Content-Type` is not JSON. Send `application/json`. */
export class UnsupportedMediaType extends coded<UnsupportedMediaType>()(
  "unsupported_media_type",
  415,
  "Send the body as application/json."
) {}

/** The path is a WebSocket endpoint. Connect with an upgrade. */
export class UpgradeRequired extends coded<UpgradeRequired>()(
  "upgrade_required",
  426,
  "Connect to this path with a WebSocket."
) {}

/**
 * The caller sent too many requests. Wait `retryAfterSeconds` (also in the `Retry-After` header).
 */
export class RateLimited extends detailed<RateLimited>()(
  "rate_limited",
  429,
  "Too many requests; slow down.",
  { retryAfterSeconds: Schema.Finite }
) {}

/** The `Idempotency-Key` is not 1 to 128 characters of A-Z a-z 0-9 _ . : - */
export class InvalidIdempotencyKey extends coded<InvalidIdempotencyKey>()(
  "invalid_idempotency_key",
  400,
  "An Idempotency-Key is 1 to 128 characters of A-Z a-z 0-9 _ . : -"
) {}

/** This caller sent another body with this `Idempotency-Key`. Use a new key. */
export class IdempotencyKeyReused extends coded<IdempotencyKeyReused>()(
  "idempotency_key_reused",
  422,
  "This Idempotency-Key was used with another body."
) {}

/** The first request with this `Idempotency-Key` is still running. Retry in a moment. */
export class IdempotencyInProgress extends coded<IdempotencyInProgress>()(
  "idempotency_in_progress",
  409,
  "The first request with this Idempotency-Key is still running."
) {}

/** A fault of the service. Report `requestId`: it finds the fault in the logs. */
export class InternalError extends detailed<InternalError>()(
  "internal_error",
  500,
  "Something went wrong on our side.",
  { requestId: Schema.String }
) {}

/** The service is starting or draining, or an entity is moving to another runner. Retry. */
export class Unavailable extends coded<Unavailable>()(
  "unavailable",
  503,
  "Temporarily unavailable; try again."
) {}
