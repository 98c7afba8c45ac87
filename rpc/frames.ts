/** What all frames and events of the realtime socket have in common. */
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Rpc } from "effect/rpc"
import {
  FeatureDisabled,
  FeatureUnavailable,
  InvalidFrame,
  PlayerBanned,
  PlayerRequired,
  RateLimited,
  Unauthorized,
  Unavailable
} from "./errors/codes.ts"

/** Errors of any frame, beside its own. */
export const commonFrameErrors = [
  RateLimited,
  PlayerRequired,
  PlayerBanned,
  FeatureDisabled,
  FeatureUnavailable,
  InvalidFrame,
  Unauthorized,
  Unavailable
] as const

/** Reply without data. */
export const Done = Schema.Struct({})

/** Declares a frame that a client sends; `errors` are its own, beside the common ones. */
export const frame = <
  const T extends string,
  Success extends Schema.Top,
  Payload extends Schema.Top | Schema.Struct.Fields = Schema.Void,
  const Errors extends ReadonlyArray<Schema.Top> = readonly []
>(
  t: T,
  summary: string,
  {
    errors,
    ...schemas
  }: {
    readonly payload?: Payload
    readonly success: Success
    readonly errors: Errors
  }
) =>
  Rpc.make(t, { ...schemas, error: Schema.Union([...commonFrameErrors, ...errors]) }).annotate(
    OpenApi.Summary,
    summary
  )

/** Declares an event that the service sends. */
export const event = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => Schema.Struct({ t: Schema.Literal(t), ...fields })
