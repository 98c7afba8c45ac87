/** `/v1/realtime/channels`: channels by the server's hand, with the secret key (spec section 4.5). */
import { Cause, Context, Effect, Layer, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { type ChannelChanges, ChannelName } from "#rpc/channels"
import { ChannelNotFound, PayloadTooLarge, Unavailable } from "#rpc/errors/codes"
import { channels as limits, throttles as paces } from "#rpc/limits"
import { ChannelRepository } from "#sql/channels"
import { Channel, channelId } from "#entities/channel/protocol"
import { jsonBytes } from "#entities/room/json-state"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Audit } from "../audit/service.ts"
import { Configs } from "../config/service.ts"
import { voiceOffered } from "./frames.ts"

type Client = ReturnType<Effect.Success<typeof Channel.client>>

/** The channels of the cluster. */
export class Channels extends Context.Service<
  Channels,
  { readonly of: (environmentId: string, name: string) => Client }
>()("server/features/channels/management/Channels") {
  static readonly layer = Layer.effect(
    Channels,
    Effect.map(Channel.client, (client) =>
      Channels.of({ of: (environmentId, name) => client(channelId(environmentId, name)) })
    )
  )
}

/** What the cluster says when a call does not get to its channel. */
const clusterFault = [
  "MailboxFull",
  "AlreadyProcessingMessage",
  "PersistenceError",
  "EntityNotAssignedToRunner"
] as const

const clusterFaults: ReadonlySet<string> = new Set(clusterFault)

type Own<E> = Exclude<E, { readonly _tag: (typeof clusterFault)[number] }>

const isOwn = <E extends { readonly _tag: string }>(error: E): error is Own<E> =>
  !clusterFaults.has(error._tag)

/** How long a channel may take to answer. */
const patience = "5 seconds"

const unavailable = Effect.fail(new Unavailable())

/** A call of a channel: whatever becomes of it, it is answered. */
const told = <A, E extends { readonly _tag: string }, R>(
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, Own<E> | Unavailable, R> =>
  call.pipe(
    Effect.catchCause((cause): Effect.Effect<never, Own<E> | Unavailable> => {
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (error !== undefined && isOwn(error)) return Effect.fail(error)
      return Effect.andThen(Effect.logWarning("A call of a channel failed", cause), unavailable)
    }),
    Effect.timeoutOrElse({ duration: patience, orElse: () => unavailable })
  )

const isName = Schema.is(ChannelName)

/** A channel that is there: a made-up name never costs an entity. */
const makeFind = Effect.gen(function* () {
  const channels = yield* Channels
  const rows = yield* ChannelRepository
  return Effect.fnUntraced(function* (name: string) {
    const { environmentId } = yield* CurrentEnvironment
    if (!isName(name) || !(yield* rows.exists(environmentId, name))) {
      return yield* new ChannelNotFound()
    }
    return channels.of(environmentId, name)
  })
})

/** The pace of a key, on all nodes together. */
const makePace = Effect.map(
  Throttles,
  (throttles) => (pace: "channelMessages" | "channelManagement") =>
    Effect.flatMap(CurrentActor, ({ id }) => takeToken(throttles, paces[pace], `${pace}:${id}`))
)

type Act = "channel.put" | "channel.delete" | "channel.moderate"

/** A call that changes a channel, and its entry in the audit log. */
const makeLogged = Effect.map(
  Audit,
  (audit) =>
    <A, E, R>(
      action: Act,
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

/** What is asked of a channel, small: of its lists, how long they are. */
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
    const logged = yield* makeLogged
    const pace = yield* makePace
    return handlers.handleAll({
      put: Effect.fnUntraced(function* ({ params, payload }) {
        const { environmentId } = yield* CurrentEnvironment
        yield* pace("channelManagement")
        if (payload.voice !== undefined && payload.voice !== null) {
          yield* Effect.provideService(voiceOffered(environmentId), Configs, configs)
        }
        const put = told(channels.of(environmentId, params.name).Put({ changes: payload }))
        return yield* logged("channel.put", params.name, put, summaryOf(payload))
      }),
      get: Effect.fnUntraced(function* ({ params }) {
        const channel = yield* find(params.name)
        return yield* told(channel.Get())
      }),
      delete: Effect.fnUntraced(function* ({ params }) {
        yield* pace("channelManagement")
        const channel = yield* find(params.name)
        yield* logged("channel.delete", params.name, told(channel.Delete()))
        return { deleted: true as const }
      }),
      message: Effect.fnUntraced(function* ({ params, payload }) {
        yield* pace("channelMessages")
        if (jsonBytes(payload.data) > limits.dataMaxBytes) {
          return yield* new PayloadTooLarge({ details: { limit: limits.dataMaxBytes } })
        }
        const channel = yield* find(params.name)
        return { delivered: yield* told(channel.Publish(payload)) }
      }),
      moderate: Effect.fnUntraced(function* ({ params, payload }) {
        yield* pace("channelManagement")
        const { playerId: target, ...act } = payload
        const channel = yield* find(params.name)
        const moderated = told(channel.Moderate({ target, ...act }))
        yield* logged("channel.moderate", params.name, moderated, payload)
        return {}
      })
    })
  })
)
