/**
 * Typed client of the player backend, for browsers, Node and mobile frameworks: sign-in, rooms,
 * matchmaking, channels, saves and stats. Calls return promises that reject with a {@link ClientError};
 * use {@link isError} to distinguish its codes. The client needs no other package.
 *
 * @example
 * const client = createClient({ baseUrl: "http://localhost:8080", key: "pk_..." })
 * const room = await client.rooms.quickMatch("default")
 * room.onMessage("move", ({ from, data }) => move(from, data))
 * room.send("move", { x: 1 })
 */
import { ages } from "./ages.ts"
import { blocks } from "./blocks.ts"
import { channels } from "./channels.ts"
import { type ClientBase, type Composed, compose } from "./compose.ts"
import { email } from "./email.ts"
import { functions } from "./functions.ts"
import { identities } from "./identities.ts"
import { news } from "./news.ts"
import { oauth } from "./oauth.ts"
import type { ClientOptions } from "./options.ts"
import { players } from "./players.ts"
import { rooms } from "./rooms.ts"
import { saves } from "./saves.ts"
import { sessions } from "./sessions.ts"
import { share } from "./share.ts"
import { stats } from "./stats.ts"
import { transfer } from "./transfer.ts"
import { voice } from "./voice.ts"

export { type Ages, ages } from "./ages.ts"
export { type Blocks, blocks } from "./blocks.ts"
export type { Channel, ChannelClosed, ChannelEvents, ChannelMessage } from "./channel.ts"
export { type Channels, type ChannelTerms, channels } from "./channels.ts"
export type { GameClock } from "./clock.ts"
export { type ClientBase, type Composed, compose, type Module } from "./compose.ts"
export type { ConnectionStatus } from "./connection.ts"
export type { Core } from "./core.ts"
export { type Credentials, type Email, email, type MailLink, type MailOptions } from "./email.ts"
export type { ListenerOptions, Unsubscribe } from "./emitter.ts"
export {
  type AnyClientError,
  ClientError,
  type ErrorCode,
  type ErrorDetails,
  isError
} from "./errors.ts"
export { type FunctionCallOptions, type Functions, functions } from "./functions.ts"
export { type Identities, identities } from "./identities.ts"
export type { Log } from "./log.ts"
export { type News, news } from "./news.ts"
export { type OAuth, oauth, type ProviderSignIn, type StartOptions } from "./oauth.ts"
export { returnToOpener } from "./oauth-callback.ts"
export { type OptInBox, optInBox, type OptInBoxOptions, type OptInClient } from "./opt-in-box.ts"
export type { ProviderOptions } from "./oauth-redirect.ts"
export type { ClientEvents, ClientOptions } from "./options.ts"
export { type Players, players } from "./players.ts"
export type {
  DataChannelLike,
  PeerConnectionClass,
  PeerConnectionLike,
  PeerDescription,
  RtcServers
} from "./peer-connection.ts"
export type {
  AnyMessages,
  ConfirmedChanges,
  Member,
  MessageOf,
  OptimisticChanges,
  PeerOptions,
  PeerRoute,
  PeerSendOptions,
  Room,
  RoomClosed,
  RoomEvents,
  RoomPeers,
  SendArguments,
  SendOptions
} from "./room.ts"
export { type EnterOptions, type RoomFilter, type RoomId, type Rooms, rooms } from "./rooms.ts"
export type { QueuedSave, SaveEvents } from "./save-queue.ts"
export { type Saves, saves, type SaveVersion } from "./saves.ts"
export { type Sessions, sessions } from "./sessions.ts"
export { type NewShareLink, type Share, share } from "./share.ts"
export type { WebSocketClass, WebSocketLike } from "./socket.ts"
export { type ReportOptions, type Stats, stats } from "./stats.ts"
export { memoryStorage, type SessionStorage } from "./storage.ts"
export type { Timers } from "./timers.ts"
export type { Profile } from "./tokens.ts"
export { type Transfer, transfer } from "./transfer.ts"
export type {
  CallClosed,
  CallOptions,
  ChannelVoice,
  VoiceCall,
  VoiceCallEvents
} from "./voice-call.ts"
export { type Voice, voice, type VoiceEvents } from "./voice.ts"
export type * from "./wire.ts"

/** All modules of the client. A new feature adds its module here. */
const modules = {
  sessions,
  email,
  oauth,
  transfer,
  players,
  identities,
  ages,
  blocks,
  news,
  rooms,
  channels,
  voice,
  saves,
  stats,
  share,
  functions
}

/** A client of one environment, with every module. */
export interface Client extends ClientBase, Composed<typeof modules> {}

/**
 * Makes a client. Nothing happens before the first call: no request, no socket, no guest. Throws a
 * `TypeError` if `baseUrl` is no http(s) URL or `key` is no publishable key.
 *
 * @example
 * const client = createClient({ baseUrl: "http://localhost:8080", key: "pk_..." })
 */
export const createClient = (options: ClientOptions): Client => compose(options, modules)
