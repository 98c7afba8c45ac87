/**
 * What a room is: its settings, members and values, what it can be told, what it tells, and how it
 * looks from outside. Spec sections 2.1, 4.4 and 6, decisions 3.7.
 */
import { DateTime, Result } from "effect"
import type {
  HostOnly,
  NotInRoom,
  P2pOnly,
  P2pRoomFull,
  PayloadTooLarge,
  PlayerNotInRoom,
  ResumeExpired,
  RoomFull,
  RoomLocked,
  StateTooLarge,
  Unavailable
} from "#rpc/errors/codes"
import type {
  CloseReason,
  JsonObject,
  RoomEvent,
  RoomPlayer,
  RoomSnapshot,
  SignalKind
} from "#rpc/rooms"
import { type JsonState, emptyJsonState, toJsonObject } from "./json-state.ts"

/** Where a member's socket is: the node that holds it, and which of its connections. */
export interface Attachment {
  readonly node: string
  readonly connectionId: string
}

/** Who comes back to a seat, and from where. */
export interface Returning extends Attachment {
  readonly playerId: string
  /** The player's address must not be seen: peers reach it through a relay only. */
  readonly relayOnly: boolean
}

/** Who takes a seat. */
export interface JoiningPlayer extends Returning {
  readonly displayName: string
}

export interface Member {
  readonly id: string
  readonly displayName: string
  /** Peers reach the member through a relay only, whatever the room's mode says. */
  readonly relayOnly: boolean
  /** Unix milliseconds. */
  readonly joinedAt: number
  readonly playerState: JsonState
  readonly attachment: Attachment | null
  /** Seated by matchmaking and not yet heard of: absent from then on. */
  readonly joinDeadline: number | null
  /** Since when the member has no socket; null while connected. */
  readonly absentSince: number | null
  /** When the others are (or were) told of the absence. */
  readonly announceAt: number | null
  readonly announced: boolean
}

/** How a room was opened, fixed for its life. */
export interface RoomSettings {
  readonly id: string
  readonly environmentId: string
  readonly code: string
  readonly mode: string
  readonly private: boolean
  readonly transport: "server" | "p2p"
  readonly p2p: { readonly relayOnly: boolean; readonly maxPlayers: number } | null
  readonly hostOnlyState: boolean
  readonly maxPlayers: number
  readonly metadata: JsonObject
  readonly graceSeconds: number
  /** Opened by matchmaking, which may fill its free seats. */
  readonly matched: boolean
  /** Unix milliseconds. */
  readonly createdAt: number
}

export interface RoomState {
  readonly settings: RoomSettings
  readonly locked: boolean
  readonly hostId: string | null
  readonly sharedState: JsonState
  readonly version: number
  /** In the order of joining. */
  readonly members: ReadonlyMap<string, Member>
  readonly lastFrameAt: number
  readonly closed: CloseReason | null
}

/** What a room can be told. `playerId` is the member who acts. */
export type RoomCommand =
  | ({ readonly t: "join" } & JoiningPlayer)
  | ({ readonly t: "resume" } & Returning)
  | {
      readonly t: "leave"
      readonly playerId: string
      readonly connectionId?: string
      readonly reason: "left" | "banned" | "deleted"
    }
  | {
      readonly t: "send"
      readonly playerId: string
      readonly type: string
      readonly data?: unknown
      readonly to?: ReadonlyArray<string>
    }
  | { readonly t: "setState"; readonly playerId: string; readonly patch: JsonObject }
  | { readonly t: "setMyState"; readonly playerId: string; readonly patch: JsonObject }
  | { readonly t: "lock"; readonly playerId: string; readonly locked: boolean }
  | {
      readonly t: "signal"
      readonly playerId: string
      readonly to: string
      readonly kind: SignalKind
      readonly data?: unknown
      readonly gen?: number
    }
  | { readonly t: "iceTransport"; readonly playerId: string }
  /** The member's age group has changed: its peers reach it through a relay only, or no longer. */
  | { readonly t: "relay"; readonly playerId: string; readonly relayOnly: boolean }
  | {
      readonly t: "disconnect"
      readonly playerId: string
      readonly connectionId: string
      /** A newer connection is expected at once: tell the others only if it does not come. */
      readonly replaced: boolean
    }
  | { readonly t: "seat"; readonly joiningPlayers: ReadonlyArray<JoiningPlayer> }
  | { readonly t: "dropNode"; readonly node: string }
  /** The node begins to watch, and knows nothing of these members yet. */
  | { readonly t: "expect"; readonly node: string }
  | { readonly t: "close"; readonly reason: CloseReason }
  | { readonly t: "tick" }

export type RoomError =
  | NotInRoom
  | HostOnly
  | StateTooLarge
  | PayloadTooLarge
  | RoomFull
  | P2pOnly
  | P2pRoomFull
  | PlayerNotInRoom
  | RoomLocked
  | ResumeExpired
  | Unavailable

/** Something the room tells: to everyone, to everyone but one, or to those named. */
export interface Emission {
  readonly event: RoomEvent
  readonly to: ReadonlyArray<string> | null
  readonly except: string | null
  /** The member whose connection starts (`enter`) or stops (`exit`) receiving with this event. */
  readonly membership: "enter" | "exit" | null
}

export interface Decision {
  readonly state: RoomState
  readonly emissions: ReadonlyArray<Emission>
  /** The data of the reply. */
  readonly data: JsonObject
}

export const toAll = (event: RoomEvent): Emission => ({
  event,
  to: null,
  except: null,
  membership: null
})

export const toOthers = (event: RoomEvent, except: string): Emission => ({
  event,
  to: null,
  except,
  membership: null
})

/** A decision whose reply carries nothing. */
export const decided = (
  state: RoomState,
  emissions: ReadonlyArray<Emission> = [],
  data: JsonObject = {}
): Result.Result<Decision, never> => Result.succeed({ state, emissions, data })

/** A room nobody sits in yet; the first to join is its host. */
export const openRoom = (settings: RoomSettings): RoomState => ({
  settings,
  locked: false,
  hostId: null,
  sharedState: emptyJsonState,
  version: 0,
  members: new Map(),
  lastFrameAt: settings.createdAt,
  closed: null
})

/** A time as the wire shows it. */
export const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Does the member hear the room? Not while away, nor before it has come in. */
export const isReachable = (member: Member): boolean =>
  member.attachment !== null && member.joinDeadline === null

/** Has everybody dropped? Such a room waits for its members, not for strangers. */
export const isDeserted = ({ members }: RoomState): boolean =>
  members.size > 0 && Array.from(members.values()).every(({ attachment }) => attachment === null)

/** A member as the others have been told: an absence does not show before it is announced. */
export const playerView = (member: Member): RoomPlayer => ({
  id: member.id,
  displayName: member.displayName,
  connected: !member.announced,
  joinedAt: iso(member.joinedAt),
  state: toJsonObject(member.playerState)
})

export const roomView = ({ settings, ...state }: RoomState): RoomSnapshot => ({
  id: settings.id,
  code: settings.code,
  mode: settings.mode,
  private: settings.private,
  locked: state.locked,
  transport: settings.transport,
  hostId: state.hostId,
  hostOnlyState: settings.hostOnlyState,
  maxPlayers: settings.maxPlayers,
  metadata: settings.metadata,
  state: toJsonObject(state.sharedState),
  version: state.version,
  createdAt: iso(settings.createdAt),
  players: Array.from(state.members.values(), playerView),
  ...(settings.p2p === null ? {} : { p2p: settings.p2p })
})

/** The room as a member gets it when it comes in. */
export const roomJoined = (state: RoomState, playerId: string, resumed: boolean): RoomEvent => ({
  t: "room_joined",
  room: roomView(state),
  playerId,
  resumed
})

/** May a stranger find a seat here through the list or matchmaking? */
export const isListed = (state: RoomState): boolean =>
  state.closed === null &&
  !state.settings.private &&
  !state.locked &&
  state.members.size < state.settings.maxPlayers &&
  Array.from(state.members.values()).some((member) => member.attachment !== null)

/** The state with one member replaced, order kept. */
export const withMember = (state: RoomState, member: Member): RoomState => ({
  ...state,
  members: new Map(state.members).set(member.id, member)
})
