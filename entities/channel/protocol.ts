/**
 * The calls of the channel entity: those of the server API, one `Input` call per node and flush, and
 * one `Watch` per node. The entity id is `<environment id>/<name>`.
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import {
  ChannelExists,
  ChannelListFull,
  ChannelNotFound,
  Unavailable,
  VoiceInUse,
  VoiceTooLarge
} from "#rpc/errors/codes"
import { AcceptedChannelChanges, ChannelMessage, ChannelReport } from "#rpc/channels/frames"
import { attachment, inputsOf } from "../messages.ts"
import {
  ChannelBatch,
  ChannelInput,
  CreateChannel,
  moderationActFields,
  PresentMember
} from "./messages.ts"

export const Channel = Entity.make("Channel", [
  /** Creates a channel for a player, who has 30 seconds to join it. */
  Rpc.make("Create", {
    payload: { create: CreateChannel },
    error: Schema.Union([ChannelExists, Unavailable])
  }),
  /** Creates a managed channel, or changes the channel and makes it managed. */
  Rpc.make("Put", {
    payload: { changes: AcceptedChannelChanges },
    success: ChannelReport,
    error: Schema.Union([VoiceInUse, VoiceTooLarge, Unavailable])
  }),
  Rpc.make("Get", {
    success: ChannelReport,
    error: Schema.Union([ChannelNotFound, Unavailable])
  }),
  Rpc.make("Delete", { error: Schema.Union([ChannelNotFound, Unavailable]) }),
  /** Activates a channel whose row is overdue; an activation without state reads its row again. */
  Rpc.make("Wake", { error: Schema.Union([Unavailable]) }),
  /** Sends a message from the server; returns the number of receiving sockets. */
  Rpc.make("Publish", {
    payload: ChannelMessage,
    success: Schema.Int,
    error: Schema.Union([ChannelNotFound, Unavailable])
  }),
  Rpc.make("Moderate", {
    payload: moderationActFields,
    error: Schema.Union([ChannelNotFound, ChannelListFull, Unavailable])
  }),
  /** Removes all members because the environment disabled channels. */
  Rpc.make("Shut", { error: Schema.Union([Unavailable]) }),
  /** Commands of one node; the replies arrive through `Watch`. */
  Rpc.make("Input", {
    payload: inputsOf(ChannelInput),
    error: Schema.Union([Unavailable])
  }),
  /** Attaches a node and streams the channel's outputs to it. An empty batch confirms it. */
  Rpc.make("Watch", {
    payload: {
      ...attachment,
      players: Schema.Array(PresentMember),
      /** Number of anonymous connections on the node. */
      listeners: Schema.Int
    },
    success: ChannelBatch,
    error: Schema.Union([ChannelNotFound, Unavailable]),
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])

/** The entity id of a channel. */
export const channelId = (environmentId: string, name: string): string => `${environmentId}/${name}`
