/**
 * What connections and links know of each other: a link delivers to subscribers, and a connection acts
 * through handles. The same for WebSockets and for native RPC.
 */
import type { Effect } from "effect"
import type { CodedError } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import type { CloseCode } from "#rpc/realtime"
import type { JsonObject } from "#rpc/rooms"
import type { GatewayCommand } from "#entities/channel/messages"
import type { PlayerCommand } from "#entities/room/messages"
import type { Frame } from "#server/platform/socket-outbox"
import type { ChannelMemberships } from "./channel-memberships.ts"
import type { ReplyCallback } from "./entity-link.ts"

/** Where a connection's frames go: a socket, or the events stream of native RPC. */
export interface FrameSink {
  /** The client's address, by which throttles count; none for a server that acts for its players. */
  readonly address?: string
  /** Sends a frame; frames keep their order. */
  readonly push: (frame: Frame) => void
  /** Closes the connection from this side. */
  readonly close: (code: CloseCode, reason: string, error: CodedError) => void
}

/** The link to the room that a connection is in. */
export interface RoomHandle {
  readonly roomId: string
  /** Without `onReply`, only an error comes back, as a warning. */
  send(command: PlayerCommand, onReply?: ReplyCallback<JsonObject>): void
  request(command: PlayerCommand): Effect.Effect<JsonObject, CodedError>
  /** The connection is closed: the room keeps its seat for the player's return. */
  disconnect(subscriber: RoomSubscriber, replaced: boolean): void
}

/** A connection as rooms see it. */
export interface RoomSubscriber {
  readonly connectionId: string
  readonly playerId: string
  readonly displayName: string
  readonly relayOnly: boolean
  readonly sink: Pick<FrameSink, "push">
  /** Reports the failure of a frame without `rid`. */
  readonly warn: (error: CodedError) => void
  /** May the connection enter this room? Not when its player has given up the seat meanwhile. */
  readonly expects: (roomId: string) => boolean
  /** The connection has entered this room. */
  readonly seated: (room: RoomHandle) => void
  /** The seat in this room is gone, without a request of the connection. */
  readonly unseated: (roomId: string) => void
}

/** The link to a channel that a connection has joined. */
export interface ChannelHandle {
  readonly ended: boolean
  /** The epoch of the activation of the channel that the link last received from. */
  readonly epoch: number
  send(command: GatewayCommand, onReply?: ReplyCallback<void>): void
  join(subscriber: ChannelSubscriber): Effect.Effect<void, CodedError>
  /** The player of the connection, who has joined or asked to, has a new name. */
  rename(subscriber: ChannelSubscriber): void
  leave(
    subscriber: ChannelSubscriber,
    reason: "left" | "banned" | "deleted",
    onReply?: ReplyCallback<void>
  ): void
  /** The connection is closed: its player stays a member for a while. */
  disconnect(subscriber: ChannelSubscriber): void
}

/** A player as channels see it. */
export interface ChannelPlayer {
  readonly playerId: string
  readonly displayName: string
  /** May the player talk in channels that players have created? */
  readonly openChat: boolean
}

/** A connection as channels see it. */
export interface ChannelSubscriber {
  readonly connectionId: string
  readonly environmentId: EnvironmentId
  /** The player; undefined for an anonymous connection, which only listens. */
  readonly player: ChannelPlayer | undefined
  readonly channels: ChannelMemberships<ChannelHandle>
  readonly sink: Pick<FrameSink, "push">
  /** Reports the failure of a frame without `rid`. */
  readonly warn: (error: CodedError) => void
}
