/**
 * What a channel is: its settings, lists and members, what it can be told, what it tells. Spec
 * sections 2.1, 4.5 and 6, decisions 3.9.
 */
import { DateTime, HashMap, Option, Result } from "effect"
import type {
  ChannelBanned,
  ChannelForbidden,
  ChannelFull,
  ChannelListFull,
  Muted,
  NotInChannel,
  OwnerOnly,
  PlayerRequired,
  SendForbidden,
  Unavailable
} from "#rpc/errors/codes"
import type {
  ChannelCloseReason,
  ChannelEvent,
  ChannelJoin,
  ChannelLeaveReason,
  ChannelPlayer,
  ChannelReport,
  ChannelSend,
  ChannelSettings,
  ChannelVoice,
  ModerateOp
} from "#rpc/channels"

/** Where a member's socket is: the node that holds it, and which of its connections. */
export interface Attachment {
  readonly node: string
  readonly connectionId: string
}

/** Who comes in, and from where. */
export interface JoiningPlayer extends Attachment {
  readonly playerId: string
  readonly displayName: string
  /** May talk where other players make the rules. */
  readonly openChat: boolean
  /** Since when, Unix milliseconds, if the channel knew the player before it moved. */
  readonly joinedAt?: number
}

export interface Member {
  readonly id: string
  readonly displayName: string
  /** Unix milliseconds. */
  readonly joinedAt: number
  /** Null while the member has no socket; the others are not told. */
  readonly attachment: Attachment | null
  /** When a member without a socket is out. */
  readonly absentUntil: number | null
}

/** How a channel is set up; `createdAt` is Unix milliseconds. */
export interface ChannelOptions {
  readonly environmentId: string
  readonly name: string
  readonly managed: boolean
  readonly ownerId: string | null
  readonly join: ChannelJoin
  readonly send: ChannelSend
  readonly open: boolean
  readonly maxMembers: number
  readonly voice: ChannelVoice | null
  readonly createdAt: number
}

/** Until when, Unix milliseconds, by player; null: until it is undone. */
export type Expirations = ReadonlyMap<string, number | null>

export interface Lists {
  readonly allow: ReadonlySet<string>
  readonly speakers: ReadonlySet<string>
  readonly muted: Expirations
  readonly banned: Expirations
}

export interface ChannelState {
  readonly options: ChannelOptions
  readonly lists: Lists
  readonly members: HashMap.HashMap<string, Member>
  /** How many anonymous connections listen, by node. */
  readonly listeners: ReadonlyMap<string, number>
  /** How many are in the voice call. */
  readonly inCall: number
  /** The end of the first grace, or somewhat earlier; null when nobody is absent. */
  readonly graceAt: number | null
  /** An owner who is not in has until then. */
  readonly ownerUntil: number | null
  /** A client-made channel that is empty ends then. */
  readonly emptyUntil: number | null
  readonly closed: ChannelCloseReason | null
}

/** What gateways and time tell a channel. `playerId` is the player who acts. */
export type ChannelCommand =
  | ({ readonly t: "join" } & JoiningPlayer)
  | {
      readonly t: "leave"
      readonly playerId: string
      readonly connectionId: string
      readonly reason: "left" | "banned" | "deleted"
    }
  | {
      readonly t: "send"
      readonly playerId: string
      readonly type: string
      readonly data?: unknown
    }
  | ({ readonly t: "moderate"; readonly playerId: string } & ModerationAct)
  /** A socket is gone. */
  | { readonly t: "disconnect"; readonly playerId: string; readonly connectionId: string }
  /** The player may only be in server-made channels from now on. */
  | { readonly t: "restrict"; readonly playerId: string }
  /** An anonymous connection comes in, with which its node has so many. */
  | ({ readonly t: "listen"; readonly listeners: number } & Attachment)
  /** A node has so many anonymous connections now. */
  | { readonly t: "listeners"; readonly node: string; readonly listeners: number }
  | { readonly t: "dropNode"; readonly node: string }
  | { readonly t: "tick" }

/** An act of moderation on a player. */
export interface ModerationAct {
  readonly op: ModerateOp
  readonly target: string
  readonly seconds?: number
}

export type ChannelError =
  | ChannelBanned
  | ChannelForbidden
  | ChannelFull
  | ChannelListFull
  | Muted
  | NotInChannel
  | OwnerOnly
  | PlayerRequired
  | SendForbidden
  | Unavailable

/** Something a channel tells, in order. */
export type Emission =
  | { readonly kind: "all"; readonly event: ChannelEvent }
  | { readonly kind: "to"; readonly to: ReadonlyArray<string>; readonly event: ChannelEvent }
  | { readonly kind: "listeners"; readonly event: ChannelEvent }
  /** Who is in has changed; how that is told depends on how many hear it. */
  | { readonly kind: "joined"; readonly member: Member }
  | { readonly kind: "left"; readonly playerId: string; readonly reason: ChannelLeaveReason }
  /** The connection hears from here on, beginning with the channel as it is. */
  | { readonly kind: "enter"; readonly playerId: string }
  | ({ readonly kind: "listen" } & Attachment)
  /** The connection hears no more. */
  | ({ readonly kind: "exit"; readonly playerId: string } & Attachment)
  | { readonly kind: "exitListeners" }
  /** Nobody hears any more. */
  | { readonly kind: "end" }

export interface Decision {
  readonly state: ChannelState
  readonly emissions: ReadonlyArray<Emission>
}

export const decided = (
  state: ChannelState,
  emissions: ReadonlyArray<Emission> = []
): Result.Result<Decision, never> => Result.succeed({ state, emissions })

const noLists: Lists = {
  allow: new Set(),
  speakers: new Set(),
  muted: new Map(),
  banned: new Map()
}

/** A channel nobody is in yet. */
export const openChannel = (
  options: ChannelOptions,
  until: number | null = null,
  lists: Lists = noLists
): ChannelState => ({
  options,
  lists,
  members: HashMap.empty(),
  listeners: new Map(),
  inCall: 0,
  graceAt: null,
  ownerUntil: options.ownerId === null ? null : until,
  emptyUntil: options.managed ? null : until,
  closed: null
})

/** A time as the wire shows it. */
export const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

export const isoOrNull = (millis: number | null): string | null =>
  millis === null ? null : iso(millis)

export const memberOf = ({ members }: ChannelState, playerId: string): Member | undefined =>
  Option.getOrUndefined(HashMap.get(members, playerId))

/** In the order of joining. */
export const membersOf = ({ members }: ChannelState): ReadonlyArray<Member> =>
  HashMap.toValues(members).toSorted(
    (a, b) => a.joinedAt - b.joinedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  )

export const listenersOf = ({ listeners }: ChannelState): number => {
  let count = 0
  for (const here of listeners.values()) count += here
  return count
}

/** How many sockets hear the channel, or did a moment ago. */
export const audienceOf = (state: ChannelState): number =>
  HashMap.size(state.members) + listenersOf(state)

/** To how many sockets a message goes, on the nodes that hear the channel now. */
export const reached = (state: ChannelState, hears: (node: string) => boolean): number => {
  let count = 0
  for (const { attachment } of HashMap.values(state.members)) {
    if (attachment !== null && hears(attachment.node)) count++
  }
  for (const [node, here] of state.listeners) if (hears(node)) count += here
  return count
}

/** The entry of a list that is still in force: undefined when there is none. */
export const inForce = (
  list: Expirations,
  playerId: string,
  now: number
): { readonly until: number | null } | undefined => {
  const until = list.get(playerId)
  return until === undefined || (until !== null && until <= now) ? undefined : { until }
}

/** What a member may do here, as `channel_self` says it. */
export const selfOf = (
  { lists, options }: ChannelState,
  playerId: string,
  now: number
): { readonly canSend: boolean; readonly mutedUntil: string | null } => {
  const muted = inForce(lists.muted, playerId, now)
  const speaks =
    options.send === "anyone" ||
    (options.send === "speakers" && (lists.speakers.has(playerId) || options.ownerId === playerId))
  return { canSend: speaks && muted === undefined, mutedUntil: isoOrNull(muted?.until ?? null) }
}

export const playerView = (member: Member): ChannelPlayer => ({
  id: member.id,
  displayName: member.displayName,
  joinedAt: iso(member.joinedAt)
})

export const settingsView = ({
  environmentId: _,
  createdAt,
  ...options
}: ChannelOptions): ChannelSettings => ({
  ...options,
  createdAt: iso(createdAt)
})

const expirationsView = (list: Expirations, now: number): ChannelReport["muted"] =>
  Array.from(list).flatMap(([playerId, until]) =>
    until !== null && until <= now ? [] : [{ playerId, until: isoOrNull(until) }]
  )

/** The channel as the server API shows it. */
export const reportOf = (state: ChannelState, now: number): ChannelReport => ({
  channel: settingsView(state.options),
  allow: Array.from(state.lists.allow),
  speakers: Array.from(state.lists.speakers),
  muted: expirationsView(state.lists.muted, now),
  banned: expirationsView(state.lists.banned, now),
  members: membersOf(state).map(playerView),
  anonymousCount: listenersOf(state)
})
