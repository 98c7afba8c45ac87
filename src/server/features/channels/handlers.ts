/** `/v1/realtime/channels`: the server manages channels, with the secret key, and so do functions. */
import { Effect, Schema } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import type { ChannelChanges, ModerateOp } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { PayloadTooLarge, PlayerNotFound } from "#rpc/errors/codes"
import { PlayerId } from "#rpc/ids"
import { jsonBytes } from "#entities/json-bytes"
import { apiGroup } from "#server/platform/api-group"
import { Audit, type AuditedEndpoint } from "../audit/service.ts"
import { Configs, requireFeature } from "../config/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { callChannel, callChannelWithRetry, makeFindChannel } from "./calls.ts"
import { Channels } from "./service.ts"

/**
 * Moderation actions that require an existing player. The other actions also apply to a deleted player.
 */
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

/** Runs a call that changes a channel, and writes it to the audit log. */
const makeAudited = Effect.map(
  Audit,
  (audit) =>
    <A, E, R>(
      endpoint: AuditedEndpoint,
      name: string,
      call: Effect.Effect<A, E, R>,
      details: Readonly<Record<string, Schema.Json>> = {}
    ) =>
      audit.recordOperationAfter(endpoint, call, { target: { kind: "channel", id: name }, details })
)

/** The changes for the audit log, with the lengths of lists instead of their entries. */
const summaryOf = ({ allow, speakers, ...settings }: ChannelChanges) => ({
  ...settings,
  ...(allow === undefined ? {} : { allow: allow.length }),
  ...(speakers === undefined ? {} : { speakers: speakers.length })
})

export const ChannelsHttp = apiGroup(
  Api,
  "channels",
  Effect.fn(function* (handlers) {
    const channels = yield* Channels
    const configs = yield* Configs
    const find = yield* makeFindChannel
    const audited = yield* makeAudited
    const requirePlayer = yield* makeRequirePlayer
    return handlers.handleAll({
      put: Effect.fnUntraced(function* ({ endpoint, params, payload }) {
        const { environmentId } = yield* CurrentEnvironment
        if (payload.voice !== undefined && payload.voice !== null) {
          yield* Effect.provideService(requireFeature(environmentId, "voice"), Configs, configs)
        }
        const channel = channels.of(environmentId, params.name)
        const put = callChannelWithRetry(channel.Put({ changes: payload }))
        return yield* audited(endpoint, params.name, put, summaryOf(payload))
      }),
      get: Effect.fnUntraced(function* ({ params }) {
        const channel = yield* find(params.name)
        return yield* callChannelWithRetry(channel.Get())
      }),
      delete: Effect.fnUntraced(function* ({ endpoint, params }) {
        const channel = yield* find(params.name)
        yield* audited(endpoint, params.name, callChannel(channel.Delete()))
        return { deleted: true as const }
      }),
      message: Effect.fnUntraced(function* ({ params, payload }) {
        if (jsonBytes(payload.data) > channelLimits.dataMaxBytes) {
          return yield* new PayloadTooLarge({ details: { limit: channelLimits.dataMaxBytes } })
        }
        const channel = yield* find(params.name)
        return { delivered: yield* callChannel(channel.Publish(payload)) }
      }),
      moderate: Effect.fnUntraced(function* ({ endpoint, params, payload }) {
        const { playerId: target, ...action } = payload
        const channel = yield* find(params.name)
        if (concerning.has(action.op)) yield* requirePlayer(target)
        const moderated = callChannel(channel.Moderate({ target, ...action }))
        yield* audited(endpoint, params.name, moderated, payload)
        return {}
      })
    })
  })
)
