/**
 * Model of a room: its settings, members and state, the commands it takes, the events it emits, and its
 * views for clients.
 */
import { DateTime, Result } from "effect"
import type {
  HostOnly,
  InvalidFrame,
  NotInRoom,
  NotPermitted,
  P2pOnly,
  P2pRoomFull,
  PayloadTooLarge,
  PlayerNotInRoom,
  ResumeExpired,
  RoomFull,
  RoomLocked,
  RoomNotFound,
  StateTooLarge,
  TeamFull,
  Unavailable,
  VoteCooldown,
  VoteNotFound,
  VoteRunning
} from "#rpc/errors/codes"
import type {
  CloseReason,
  RoomEvent,
  RoomPlayer,
  RoomSnapshot,
  SignalKind
} from "#rpc/rooms/events"
import type { JsonObject } from "#rpc/json"
import type { VoteOp } from "#rpc/config-document/authority"
import type { OpenVote, RoomModerateOp, RoomTeam } from "#rpc/rooms/authority"
import type { Absence } from "../reconnect-grace.ts"
import { type JsonState, emptyJsonState, toJsonObject } from "./json-state.ts"
import { noRights, type Rights, type TeamSlots, type Vote, type VoteRule } from "./rights.ts"

/** The connection of a member, and the node that holds it. */
export interface Attachment {
  readonly node: string
  readonly connectionId: string
}

/** A player who returns to a seat, and the connection. */
export interface Returning extends Attachment {
  readonly playerId: string
  /** Whether peers reach the player through a relay only and never learn its address. */
  readonly relayOnly: boolean
  /** Current name of the player; a runner of an older version does not send it. */
  readonly displayName?: string
  /** The players whom the player has blocked; a runner of an older version does not send it. */
  readonly blocks?: ReadonlyArray<string>
}

/** A player who takes a seat. */
export interface JoiningPlayer extends Returning {
  readonly displayName: string
}

export interface Member {
  readonly id: string
  readonly displayName: string
  /** The players whom the member has blocked. Snapshots leave it out: who connects brings it. */
  readonly blocks: ReadonlySet<string>
  /** Whether peers reach the member through a relay only, regardless of the mode. */
  readonly relayOnly: boolean
  /** Time of joining, Unix milliseconds. */
  readonly joinedAt: number
  readonly playerState: JsonState
  readonly attachment: Attachment | null
  /**
   * Time by which a player must join who was seated by matchmaking, or whose node came back without naming
   * it, Unix milliseconds; null after that.
   */
  readonly joinDeadline: number | null
  /** Whether the player has ever joined: the seat of one who has not ends with the deadline. */
  readonly arrived: boolean
  /**
   * Time at which the connection was last known, after the room woke without having heard of its node;
   * null otherwise.
   */
  readonly seenAt: number | null
  /** The absence of a member without a connection; null while connected. */
  readonly absence: Absence | null
  /** Time at which the others are, or were, notified of the absence. */
  readonly announceAt: number | null
  readonly announced: boolean
  /** Key of the team; only in rooms with teams. */
  readonly team?: string
}

/** Settings of a room, fixed for its life. */
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
  /** Whether matchmaking opened the room and may fill its free seats. */
  readonly matched: boolean
  /** Whether replies to changes of state wait until the change is stored. */
  readonly durable?: boolean
  /** What the host may do to other players; absent for nothing. */
  readonly powers?: ReadonlyArray<string>
  /** The votes that members may start; absent for none. */
  readonly votes?: ReadonlyArray<VoteRule>
  /** Absent in a room without teams. */
  readonly teams?: ReadonlyArray<TeamSlots>
  /** Whether players choose their teams. */
  readonly freeTeams?: boolean
  /** Time of creation, Unix milliseconds. */
  readonly createdAt: number
}

export interface RoomState {
  readonly settings: RoomSettings
  readonly locked: boolean
  readonly hostId: string | null
  readonly sharedState: JsonState
  readonly version: number
  /** Members in the order of joining. */
  readonly members: ReadonlyMap<string, Member>
  readonly rights: Rights
  /** Number of changes of the teams. */
  readonly teamsVersion: number
  readonly lastFrameAt: number
  /** Since when graces are held, since players of the environment wait; null while they run. */
  readonly heldSince: number | null
  /** Time at which the room woke on its runner, or opened. */
  readonly wokenAt: number
  readonly closed: CloseReason | null
}

/** Who moderates: the host, or a server. */
export type Moderator = "server" | { readonly playerId: string }

/** A command; `playerId` is the acting member. */
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
      readonly t: "moderate"
      readonly by: Moderator
      readonly op: RoomModerateOp
      readonly target: string
      readonly team?: string
      readonly reason?: string
    }
  | {
      readonly t: "startVote"
      readonly playerId: string
      readonly op: VoteOp
      readonly target?: string
    }
  | {
      readonly t: "castVote"
      readonly playerId: string
      readonly voteId: string
      readonly yes: boolean
    }
  | { readonly t: "setTeam"; readonly playerId: string; readonly team: string }
  | {
      readonly t: "signal"
      readonly playerId: string
      readonly to: string
      readonly kind: SignalKind
      readonly data?: unknown
      readonly gen?: number
    }
  | { readonly t: "iceTransport"; readonly playerId: string }
  /** Updates a member whose name, blocks or need of a relay have changed. */
  | {
      readonly t: "relay"
      readonly playerId: string
      readonly relayOnly: boolean
      readonly displayName?: string
      readonly blocks?: ReadonlyArray<string>
    }
  /** Sets whom a member has blocked, wherever its connection is. */
  | { readonly t: "block"; readonly playerId: string; readonly blocks: ReadonlyArray<string> }
  | {
      readonly t: "disconnect"
      readonly playerId: string
      readonly connectionId: string
      /** Whether a newer connection is about to follow: the room notifies the others only if it does not. */
      readonly replaced: boolean
      /** Whether the node closes its connections because it drains. */
      readonly drained?: boolean
    }
  | { readonly t: "seat"; readonly joiningPlayers: ReadonlyArray<JoiningPlayer> }
  | { readonly t: "rename"; readonly playerId: string; readonly displayName: string }
  | { readonly t: "dropNode"; readonly node: string }
  /** Expects a node that attaches for the first time and knows none of its members yet. */
  | { readonly t: "expect"; readonly node: string }
  | { readonly t: "close"; readonly reason: CloseReason }
  | { readonly t: "tick" }

export type RoomError =
  | InvalidFrame
  | NotInRoom
  | NotPermitted
  | RoomNotFound
  | TeamFull
  | VoteCooldown
  | VoteNotFound
  | VoteRunning
  | HostOnly
  | StateTooLarge
  | PayloadTooLarge
  | RoomFull
  | RoomNotFound
  | P2pOnly
  | P2pRoomFull
  | PlayerNotInRoom
  | RoomLocked
  | ResumeExpired
  | Unavailable

/** An event for all members, for all but one, or for those named. */
export interface Emission {
  readonly event: RoomEvent
  readonly to: ReadonlyArray<string> | null
  readonly except: string | null
  /** The members besides `except` whom an event for all does not reach. */
  readonly without?: ReadonlyArray<string>
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

/** A successful decision; by default without events and reply data. */
export const decided = (
  state: RoomState,
  emissions: ReadonlyArray<Emission> = [],
  data: JsonObject = {}
): Result.Result<Decision, never> => Result.succeed({ state, emissions, data })

/** A room without members; the first to join becomes its host. */
export const openRoom = (settings: RoomSettings): RoomState => ({
  settings,
  locked: false,
  hostId: null,
  sharedState: emptyJsonState,
  version: 0,
  members: new Map(),
  rights: noRights,
  teamsVersion: 0,
  lastFrameAt: settings.createdAt,
  heldSince: null,
  wokenAt: settings.createdAt,
  closed: null
})

/** Formats Unix milliseconds as ISO 8601. */
export const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Whether the member receives events: it is connected and has joined. */
export const isReachable = (member: Member): boolean =>
  member.attachment !== null && member.joinDeadline === null

/** Whether all members are absent. Such a room takes no matched players. */
export const isDeserted = ({ members }: RoomState): boolean =>
  members.size > 0 && Array.from(members.values()).every(({ attachment }) => attachment === null)

/** The event of a member that has another name than before. */
export const nameChange = ({ displayName, id }: Member, name: string): ReadonlyArray<RoomEvent> =>
  name === displayName ? [] : [{ t: "player_updated", player: { id, displayName: name } }]

const countOf = ({ ballots }: Vote, ballot: boolean): number =>
  Array.from(ballots.values()).filter((each) => each === ballot).length

/** An open vote as members see it: nobody learns who voted how. */
export const voteView = (vote: Vote): OpenVote => ({
  voteId: vote.id,
  op: vote.op,
  ...(vote.targetId === null ? {} : { playerId: vote.targetId }),
  yes: countOf(vote, true),
  no: countOf(vote, false),
  needed: vote.needed,
  endsAt: iso(vote.endsAt)
})

/** The teams and their players; undefined in a room without teams. */
export const teamsView = ({
  members,
  settings
}: Pick<RoomState, "members" | "settings">): ReadonlyArray<RoomTeam> | undefined =>
  settings.teams?.map(({ key }) => ({
    key,
    players: Array.from(members.values()).flatMap(({ id, team }) => (team === key ? [id] : []))
  }))

/** A member as the others see it: an absence shows once it is announced. */
export const playerView = (member: Member, { muted }: Rights): RoomPlayer => ({
  id: member.id,
  displayName: member.displayName,
  connected: !member.announced,
  joinedAt: iso(member.joinedAt),
  state: toJsonObject(member.playerState),
  ...(muted.has(member.id) ? { muted: true } : {})
})

/** What the view of a room has only where its mode gives rights. */
const rightsView = (state: RoomState) => {
  const teams = teamsView(state)
  const { vote } = state.rights
  return {
    ...(teams === undefined ? {} : { teams }),
    ...(vote === null ? {} : { vote: voteView(vote) })
  }
}

export const roomView = (state: RoomState): RoomSnapshot => {
  const { settings } = state
  return {
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
    players: Array.from(state.members.values(), (member) => playerView(member, state.rights)),
    ...(settings.p2p === null ? {} : { p2p: settings.p2p }),
    ...rightsView(state)
  }
}

/** The snapshot that a member receives when it joins. */
export const roomJoined = (state: RoomState, playerId: string, resumed: boolean): RoomEvent => ({
  t: "room_joined",
  room: roomView(state),
  playerId,
  resumed
})

/** Whether the list and matchmaking offer seats of this room. */
export const isListed = (state: RoomState): boolean =>
  state.closed === null &&
  !state.settings.private &&
  !state.locked &&
  state.members.size < state.settings.maxPlayers &&
  Array.from(state.members.values()).some((member) => member.attachment !== null)

/** Replaces one member; keeps the order. */
export const withMember = (state: RoomState, member: Member): RoomState => ({
  ...state,
  members: new Map(state.members).set(member.id, member)
})
