/**
 * Interfaces between connections and links, the same for WebSockets and for native RPC. A link
 * delivers to subscribers, and a connection acts through handles.
 */
import type { Effect } from "effect"
import type { CodedError } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import type { CloseCode } from "#rpc/realtime"
import type { JsonObject } from "#rpc/json"
import type { GatewayCommand } from "#entities/channel/messages"
import type { PlayerCommand } from "#entities/room/messages"
import type { Frame } from "#server/platform/socket-outbox"
import type { ChannelMemberships } from "./channel-memberships.ts"
import type { ReplyCallback } from "./entity-link.ts"

/** Target of a connection's frames: a socket, or the events stream of native RPC. */
export interface FrameSink {
  /** The client's address, by which throttles count; none for a server that acts for its players. */
  readonly address?: string
  /** Sends a frame; frames keep their order. */
  readonly push: (frame: Frame) => void
  /** Closes the connection from this side. */
  readonly close: (code: CloseCode, reason: string, error: CodedError) => void
}

/** How a connection ended: by itself, for a newer one of its player, or since its node drains. */
export type ConnectionEnd = "lost" | "replaced" | "drained"

/** The link to the room that a connection is in. */
export interface RoomHandle {
  readonly roomId: string
  /** Sends a command. Without `onReply`, only an error comes back, as a warning. */
  send(command: PlayerCommand, onReply?: ReplyCallback<JsonObject>): void
  request(command: PlayerCommand): Effect.Effect<JsonObject, CodedError>
  /** Disconnects a closed connection: the room keeps its seat for the player's return. */
  disconnect(subscriber: RoomSubscriber, end: ConnectionEnd): void
}

/** A connection as rooms see it. */
export interface RoomSubscriber {
  readonly connectionId: string
  readonly playerId: string
  readonly displayName: string
  readonly relayOnly: boolean
  /** The players whom the player has blocked, newest first. */
  readonly blocks: ReadonlyArray<string>
  readonly sink: Pick<FrameSink, "push">
  /** Reports the failure of a frame without `rid`. */
  readonly warn: (error: CodedError) => void
  /**
   * Whether the connection may enter this room. It may not when its player has given up the seat
   * meanwhile.
   */
  readonly expects: (roomId: string) => boolean
  /** Reports that the connection has entered this room. */
  readonly seated: (room: RoomHandle) => void
  /** Reports that the seat in this room is gone, without a request of the connection. */
  readonly unseated: (roomId: string) => void
}

/** The link to a channel that a connection has joined. */
export interface ChannelHandle {
  readonly ended: boolean
  /** The epoch of the activation of the channel that the link last received from. */
  readonly epoch: number
  send(command: GatewayCommand, onReply?: ReplyCallback<void>): void
  join(subscriber: ChannelSubscriber): Effect.Effect<void, CodedError>
  /** Sends the new name and blocks of the connection's player, who has joined or asked to join. */
  rename(subscriber: ChannelSubscriber): void
  leave(
    subscriber: ChannelSubscriber,
    reason: "left" | "banned" | "deleted",
    onReply?: ReplyCallback<void>
  ): void
  /** Disconnects a closed connection: its player stays a member for a while. */
  disconnect(subscriber: ChannelSubscriber, end: ConnectionEnd): void
}

/** A player as channels see it. */
export interface ChannelPlayer {
  readonly playerId: string
  readonly displayName: string
  /** Whether the player may talk in channels that players have created. */
  readonly openChat: boolean
  /** The players whom the player has blocked, newest first. */
  readonly blocks: ReadonlyArray<string>
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
