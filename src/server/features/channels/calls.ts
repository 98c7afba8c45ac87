/** Calls of the server to channels, which live anywhere in the cluster. */
import { Cause, Effect, Option, Schema } from "effect"
import { CurrentEnvironment } from "#rpc/auth"
import { ChannelName } from "#rpc/channels/frames"
import { ChannelNotFound, Unavailable } from "#rpc/errors/codes"
import { ChannelRepository } from "#sql/channels"
import {
  type ClusterError,
  isClusterError,
  logLostCall,
  repeatWhileMoving
} from "#server/links/entity-call"
import { Channels } from "./service.ts"

type ChannelError<E> = Exclude<E, { readonly _tag: ClusterError }>

const isChannelError = <E extends { readonly _tag: string }>(error: E): error is ChannelError<E> =>
  !isClusterError(error)

/** Time limit for a channel's reply. */
const replyTimeout = "5 seconds"

const unavailable = Effect.fail(new Unavailable())

const reach = <A, E extends { readonly _tag: string }, R>(
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, ChannelError<E> | Unavailable, R> =>
  Effect.catchCause(call, (cause): Effect.Effect<never, ChannelError<E> | Unavailable> => {
    const error = Option.getOrUndefined(Cause.findErrorOption(cause))
    if (error !== undefined && isChannelError(error)) return Effect.fail(error)
    return Effect.andThen(logLostCall(cause), unavailable)
  })

const withinTime = Effect.timeoutOrElse({ duration: replyTimeout, orElse: () => unavailable })

/**
 * Calls a channel. Fails with `unavailable` if the call does not reach the channel, or gets no reply in
 * time.
 */
export const callChannel = <A, E extends { readonly _tag: string }, R>(
  call: Effect.Effect<A, E, R>
) => withinTime(reach(call))

/**
 * Calls a channel like `callChannel`, and retries for up to two seconds while the channel moves or
 * ends. The call must be idempotent.
 */
export const callChannelWithRetry = <A, E extends { readonly _tag: string }, R>(
  call: Effect.Effect<A, E, R>
) => withinTime(repeatWhileMoving(reach(call)))

const isName = Schema.is(ChannelName)

/** Finds a channel. Checks that it exists, so that an invented name wakes no entity. */
export const makeFindChannel = Effect.gen(function* () {
  const channels = yield* Channels
  const repository = yield* ChannelRepository
  return Effect.fnUntraced(function* (name: string) {
    const { environmentId } = yield* CurrentEnvironment
    if (!isName(name) || !(yield* repository.exists(environmentId, name))) {
      return yield* new ChannelNotFound()
    }
    return channels.of(environmentId, name)
  })
})
