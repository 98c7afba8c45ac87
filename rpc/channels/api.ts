/** Channels in the server API: settings, lists, members and messages, with the secret key. */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import {
  BodyMaxBytes,
  type CallerLimit,
  CallerRate,
  FeatureGate,
  RequiredFeature,
  Requests,
  SecretKey
} from "../auth.ts"
import {
  ChannelListFull,
  ChannelNotFound,
  PlayerNotFound,
  VoiceInUse,
  VoiceTooLarge,
  wire
} from "../errors/codes.ts"
import { group, tagMount } from "../feature.ts"
import { operation } from "../operations.ts"
import { Deleted } from "../responses.ts"
import { ChannelChanges, ChannelMessage, ChannelName, ChannelReport, Moderation } from "./frames.ts"
import { channelLimits } from "./limits.ts"

const named = { params: { name: Schema.String } }

const managementRate: CallerLimit = {
  limit: 300,
  seconds: 60,
  name: "channelManagement",
  per: "key"
}

const messageRate: CallerLimit = { limit: 600, seconds: 60, name: "channelMessages", per: "key" }

/**
 * `/v1/realtime/channels`: channel management with the secret key. PUT, DELETE and moderate share 300
 * calls a minute for each key; messages have 600. All nodes share these limits.
 */
export class ChannelsApi extends tagMount(
  group(
    "channels",
    "server",
    "Channels",
    "Managing realtime channels and sending messages to them."
  ),
  "server"
)
  .add(
    HttpApiEndpoint.put("put", "/:name", {
      params: { name: ChannelName },
      payload: ChannelChanges,
      success: ChannelReport,
      error: [wire(VoiceInUse), wire(VoiceTooLarge)]
    })
      .annotateMerge(
        operation("Create a channel, take one over, or change its settings", {
          audit: "channel.put",
          functions: true
        })
      )
      .annotate(CallerRate, managementRate),
    HttpApiEndpoint.get("get", "/:name", {
      ...named,
      success: ChannelReport,
      error: wire(ChannelNotFound)
    }).annotateMerge(
      operation("Get a channel's settings, lists and members", {
        functions: true,
        tool: { name: "channel_get", effect: "reads" }
      })
    ),
    HttpApiEndpoint.delete("delete", "/:name", {
      ...named,
      success: Deleted,
      error: wire(ChannelNotFound)
    })
      .annotateMerge(operation("Close a channel", { audit: "channel.delete", functions: true }))
      .annotate(CallerRate, managementRate),
    HttpApiEndpoint.post("message", "/:name/messages", {
      ...named,
      payload: ChannelMessage,
      success: Schema.Struct({ delivered: Schema.Int }).annotate({
        identifier: "Delivered",
        description: "The number of members to whom the message went."
      }),
      error: wire(ChannelNotFound)
    })
      .annotateMerge(
        operation("Send a message from the server; `delivered` counts sockets", { functions: true })
      )
      .annotate(CallerRate, messageRate),
    HttpApiEndpoint.post("moderate", "/:name/moderate", {
      ...named,
      payload: Moderation,
      success: Schema.Struct({}),
      error: [wire(ChannelNotFound), wire(ChannelListFull), wire(PlayerNotFound)]
    })
      .annotateMerge(
        operation("Invite, mute, kick or ban a player", {
          audit: "channel.moderate",
          functions: true,
          tool: { name: "channel_moderate", effect: "destroys" }
        })
      )
      .annotate(CallerRate, managementRate)
  )
  .annotateEndpoints(RequiredFeature, "realtimeChannels")
  .annotateEndpoints(BodyMaxBytes, channelLimits.bodyMaxBytes)
  .prefix("/v1/realtime/channels")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(SecretKey) {}
