/** `/v1/realtime/channels`: the server manages channels, with the secret key. */
import { Cause, Effect, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { type ChannelChanges, ChannelName, type ModerateOp } from "#rpc/channels"
import { ChannelNotFound, PayloadTooLarge, PlayerNotFound, Unavailable } from "#rpc/errors/codes"
import { PlayerId } from "#rpc/ids"
import { channels as limits, rateWindows } from "#rpc/limits"
import { ChannelRepository } from "#sql/channels"
import { jsonBytes } from "#entities/room/json-state"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Audit } from "../audit/service.ts"
import { Configs } from "../config/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Channels, checkVoiceFeature } from "./service.ts"

/** The cluster's errors when a call does not reach its channel. */
const clusterErrors = [
  "MailboxFull",
  "AlreadyProcessingMessage",
  "PersistenceError",
  "EntityNotAssignedToRunner"
] as const

const clusterErrorTags: ReadonlySet<string> = new Set(clusterErrors)

type ChannelError<E> = Exclude<E, { readonly _tag: (typeof clusterErrors)[number] }>

const isChannelError = <E extends { readonly _tag: string }>(error: E): error is ChannelError<E> =>
  !clusterErrorTags.has(error._tag)

/** How long a channel may take to reply. */
const replyTimeout = "5 seconds"

const unavailable = Effect.fail(new Unavailable())

/** Calls a channel; always completes, as `unavailable` if the call does not reach it. */
const callChannel = <A, E extends { readonly _tag: string }, R>(
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, ChannelError<E> | Unavailable, R> =>
  call.pipe(
    Effect.catchCause((cause): Effect.Effect<never, ChannelError<E> | Unavailable> => {
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (error !== undefined && isChannelError(error)) return Effect.fail(error)
      return Effect.andThen(Effect.logWarning("Failed to call a channel", cause), unavailable)
    }),
    Effect.timeoutOrElse({ duration: replyTimeout, orElse: () => unavailable })
  )

const isName = Schema.is(ChannelName)

/** Finds a channel. Checks that it exists, so that an invented name wakes no entity. */
const makeFind = Effect.gen(function* () {
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

/** Limits the requests of a key, over all nodes. */
const makeThrottle = Effect.map(
  Throttles,
  (throttles) => (limit: "channelMessages" | "channelManagement") =>
    Effect.flatMap(CurrentActor, ({ id }) =>
      takeToken(throttles, rateWindows[limit], `${limit}:${id}`)
    )
)

/** Actions that a deleted player may still need undone are the others. */
const concerning: ReadonlySet<ModerateOp> = new Set(["invite", "allowSend", "mute", "kick", "ban"])

const isPlayerId = Schema.is(PlayerId)

/** Fails unless the environment has this player. */
const makeRequirePlayer = Effect.map(PlayerStatusCache, (statuses) =>
  Effect.fnUntraced(function* (playerId: string) {
    const { environmentId } = yield* CurrentEnvironment
    const isKnown =
      isPlayerId(playerId) && (yield* statuses.get(environmentId, playerId)) !== undefined
    if (!isKnown) return yield* new PlayerNotFound()
  })
)

type AuditAction = "channel.put" | "channel.delete" | "channel.moderate"

/** Runs a call that changes a channel, and writes it to the audit log. */
const makeAudited = Effect.map(
  Audit,
  (audit) =>
    <A, E, R>(
      action: AuditAction,
      name: string,
      call: Effect.Effect<A, E, R>,
      details: Readonly<Record<string, Schema.Json>> = {}
    ) =>
      Effect.flatMap(CurrentEnvironment, (environment) =>
        audit.recordAfter(environment, call, {
          action,
          target: { kind: "channel", id: name },
          details
        })
      )
)

/** The changes for the audit log, with the lengths of lists instead of their entries. */
const summaryOf = ({ allow, speakers, ...settings }: ChannelChanges) => ({
  ...settings,
  ...(allow === undefined ? {} : { allow: allow.length }),
  ...(speakers === undefined ? {} : { speakers: speakers.length })
})

export const ChannelsHttp = HttpApiBuilder.group(
  Api,
  "channels",
  Effect.fn(function* (handlers) {
    const channels = yield* Channels
    const configs = yield* Configs
    const find = yield* makeFind
    const audited = yield* makeAudited
    const throttle = yield* makeThrottle
    const requirePlayer = yield* makeRequirePlayer
    return handlers.handleAll({
      put: Effect.fnUntraced(function* ({ params, payload }) {
        const { environmentId } = yield* CurrentEnvironment
        yield* throttle("channelManagement")
        if (payload.voice !== undefined && payload.voice !== null) {
          yield* Effect.provideService(checkVoiceFeature(environmentId), Configs, configs)
        }
        const put = callChannel(channels.of(environmentId, params.name).Put({ changes: payload }))
        return yield* audited("channel.put", params.name, put, summaryOf(payload))
      }),
      get: Effect.fnUntraced(function* ({ params }) {
        const channel = yield* find(params.name)
        return yield* callChannel(channel.Get())
      }),
      delete: Effect.fnUntraced(function* ({ params }) {
        yield* throttle("channelManagement")
        const channel = yield* find(params.name)
        yield* audited("channel.delete", params.name, callChannel(channel.Delete()))
        return { deleted: true as const }
      }),
      message: Effect.fnUntraced(function* ({ params, payload }) {
        yield* throttle("channelMessages")
        if (jsonBytes(payload.data) > limits.dataMaxBytes) {
          return yield* new PayloadTooLarge({ details: { limit: limits.dataMaxBytes } })
        }
        const channel = yield* find(params.name)
        return { delivered: yield* callChannel(channel.Publish(payload)) }
      }),
      moderate: Effect.fnUntraced(function* ({ params, payload }) {
        yield* throttle("channelManagement")
        const { playerId: target, ...action } = payload
        const channel = yield* find(params.name)
        if (concerning.has(action.op)) yield* requirePlayer(target)
        const moderated = callChannel(channel.Moderate({ target, ...action }))
        yield* audited("channel.moderate", params.name, moderated, payload)
        return {}
      })
    })
  })
)
