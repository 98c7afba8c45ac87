/** Calls to entities that always complete: with a result, a coded error, or `unavailable`. */
import { Cause, Effect, Fiber, Option, Schedule } from "effect"
import { type CodedError, Unavailable } from "#rpc/errors/codes"

/** Errors of the cluster for a call that does not reach its entity. */
const clusterErrors = [
  "MailboxFull",
  "AlreadyProcessingMessage",
  "PersistenceError",
  "EntityNotAssignedToRunner"
] as const

export type ClusterError = (typeof clusterErrors)[number]

const clusterErrorTags: ReadonlySet<string> = new Set(clusterErrors)

export const isClusterError = ({ _tag }: { readonly _tag: string }): boolean =>
  clusterErrorTags.has(_tag)

/**
 * Logs the reason of a call without result. A defect is a fault of the service, anything else an
 * entity that moves.
 */
export const logLostCall = <E>(cause: Cause.Cause<E>): Effect.Effect<void> =>
  (Cause.hasDies(cause) ? Effect.logError : Effect.logDebug)("Failed to call an entity", cause)

/** Replaces the cluster's own errors, which a player cannot use. */
const hideClusterError = (error: CodedError): CodedError =>
  isClusterError(error) ? new Unavailable() : error

/** Time that an entity may take to reply before the call counts as lost. */
export const replyMillis = 3000

/** Fails as `unavailable` when the reply takes too long. */
export const withReplyTimeout = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> =>
  Effect.timeoutOrElse(call, {
    duration: replyMillis,
    orElse: () => Effect.fail(new Unavailable())
  })

/** Detaches a call, so that an interrupted caller does not wait for its interruption. */
const detached = <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(call), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Effect.forkDetach(Fiber.interrupt(fiber)))
  )

/** A call without a bound. An entity that moves interrupts its calls: that must not interrupt the caller. */
const callOnce = <A, R>(call: Effect.Effect<A, CodedError, R>): Effect.Effect<A, CodedError, R> =>
  call.pipe(
    Effect.catchCause((cause) => {
      const error = Cause.findErrorOption(cause)
      if (Option.isSome(error)) return Effect.fail(error.value)
      return Effect.andThen(logLostCall(cause), Effect.fail(new Unavailable()))
    }),
    detached,
    Effect.mapError(hideClusterError)
  )

/** Calls an entity. */
export const callEntity = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> => withReplyTimeout(callOnce(call))

export const isUnavailable = ({ _tag }: { readonly _tag: string }): boolean =>
  _tag === "unavailable"

/** Repeats a call for up to two seconds, without a bound for each: an entity that moves is found again by then. */
export const repeatWhileMoving = <A, E extends { readonly _tag: string }, R>(
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.retry(call, { times: 40, schedule: Schedule.spaced(50), while: isUnavailable })

/** The same, with a bound for all of it. */
export const retryWhileMoving = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> => withReplyTimeout(repeatWhileMoving(call))

/** Calls an entity that may be moving; only for calls that may be carried out twice. */
export const callEntityWithRetry = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> => retryWhileMoving(callOnce(call))
