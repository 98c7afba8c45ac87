/**
 * Model of a channel: its options, lists and members, the commands it takes, the events it emits, and
 * its views for the API.
 */
import { DateTime, HashMap, Option, Result } from "effect"
import type {
  ChannelBanned,
  ChannelForbidden,
  ChannelFull,
  ChannelListFull,
  InvalidFrame,
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
} from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { type Absence, absent } from "../reconnect-grace.ts"

const emptyMillis = channelLimits.emptySeconds * 1000

/** The connection of a member, and the node that holds it. */
export interface Attachment {
  readonly node: string
  readonly connectionId: string
}

/** A player who joins, and the connection. */
export interface JoiningPlayer extends Attachment {
  readonly playerId: string
  readonly displayName: string
  /** Whether the player may join unmanaged channels. */
  readonly openChat: boolean
  /** Time of joining before the channel moved, Unix milliseconds. */
  readonly joinedAt?: number
  /** Whether the player is a member and has a new name, or new blocks. */
  readonly renames?: boolean
  /** The players whom the player has blocked; a runner of an older version does not send it. */
  readonly blocks?: ReadonlyArray<string>
}

export interface Member {
  readonly id: string
  readonly displayName: string
  /** Time of joining, Unix milliseconds. */
  readonly joinedAt: number
  /**
   * Attachment of the member; null while it has no connection. The others receive no event about a
   * change.
   */
  readonly attachment: Attachment | null
  /** The absence of a member without a connection; null while connected. */
  readonly absence: Absence | null
}

/** Options of a channel; `createdAt` is Unix milliseconds. */
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

/** Expiry by player, Unix milliseconds; null: until revoked. */
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
  /** Whom members have blocked, for those who have. */
  readonly blocks: ReadonlyMap<string, ReadonlySet<string>>
  /** Number of anonymous connections by node. */
  readonly listeners: ReadonlyMap<string, number>
  /** Number of members in the voice call. */
  readonly inCall: number
  /** End of the first grace, or earlier; null when nobody is absent. */
  readonly graceAt: number | null
  /** Since when graces are held, since players of the environment wait; null while they run. */
  readonly heldSince: number | null
  /** Time at which the channel woke on its runner, or opened. */
  readonly wokenAt: number
  /** Absence of an owner who keeps the channel; null while it is a member, and without an owner. */
  readonly ownerAway: Absence | null
  /** Time without members, after which an unmanaged channel closes; null while it has any. */
  readonly emptySince: Absence | null
  readonly closed: ChannelCloseReason | null
}

/** Content of a message, as its sender gives it. */
export interface MessageContent {
  readonly type: string
  readonly data?: unknown
}

/** A command of a gateway or timer; `playerId` is the acting player. */
export type ChannelCommand =
  | ({ readonly t: "join" } & JoiningPlayer)
  | {
      readonly t: "leave"
      readonly playerId: string
      readonly connectionId: string
      readonly reason: "left" | "banned" | "deleted"
    }
  | ({ readonly t: "send"; readonly playerId: string } & MessageContent)
  | ({ readonly t: "moderate"; readonly playerId: string } & ModerationAct)
  /** Disconnects a connection that has closed. */
  | {
      readonly t: "disconnect"
      readonly playerId: string
      readonly connectionId: string
      /** Whether the node closes its connections because it drains. */
      readonly drained?: boolean
    }
  /** Restricts the player to managed channels. */
  | { readonly t: "restrict"; readonly playerId: string }
  /** Attaches an anonymous connection; `listeners` is the node's new count. */
  | ({ readonly t: "listen"; readonly listeners: number } & Attachment)
  /** Sets the changed number of a node's anonymous connections. */
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
  | InvalidFrame
  | Muted
  | NotInChannel
  | OwnerOnly
  | PlayerRequired
  | SendForbidden
  | Unavailable

/** An effect of a command on the outside, in order. */
export type Emission =
  | {
      readonly kind: "all"
      readonly event: ChannelEvent
      /** The members whom the event does not reach. */
      readonly without?: ReadonlyArray<string>
    }
  | { readonly kind: "to"; readonly to: ReadonlyArray<string>; readonly event: ChannelEvent }
  | { readonly kind: "listeners"; readonly event: ChannelEvent }
  /** Reports a change of presence; the size of the audience decides how the actor sends it. */
  | { readonly kind: "joined"; readonly member: Member }
  | { readonly kind: "left"; readonly playerId: string; readonly reason: ChannelLeaveReason }
  /** Starts the events of a connection, beginning with a snapshot. */
  | { readonly kind: "enter"; readonly playerId: string }
  | ({ readonly kind: "listen" } & Attachment)
  /** Stops the events of a connection. */
  | ({ readonly kind: "exit"; readonly playerId: string } & Attachment)
  | { readonly kind: "exitListeners" }
  /** Stops the events of all connections. */
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

/** The state of a channel without members, which opens or wakes now. */
export const openChannel = (
  options: ChannelOptions,
  now: number,
  lists: Lists = noLists
): ChannelState => ({
  options,
  lists,
  members: HashMap.empty(),
  blocks: new Map(),
  listeners: new Map(),
  inCall: 0,
  graceAt: null,
  heldSince: null,
  wokenAt: now,
  ownerAway: options.ownerId === null ? null : absent(now, emptyMillis, { byService: true }),
  emptySince: options.managed ? null : absent(now, emptyMillis, { byService: true }),
  closed: null
})

/** Formats Unix milliseconds as ISO 8601. */
export const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

export const isoOrNull = (millis: number | null): string | null =>
  millis === null ? null : iso(millis)

export const memberOf = ({ members }: ChannelState, playerId: string): Member | undefined =>
  Option.getOrUndefined(HashMap.get(members, playerId))

/** The nodes of those of the players who are connected. */
export const nodesOf = (state: ChannelState, players: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(players.flatMap((player) => memberOf(state, player)?.attachment?.node ?? []))

/** Members in the order of joining. */
export const membersOf = ({ members }: ChannelState): ReadonlyArray<Member> =>
  HashMap.toValues(members).toSorted(
    (a, b) => a.joinedAt - b.joinedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  )

export const listenersOf = ({ listeners }: ChannelState): number => {
  let count = 0
  for (const here of listeners.values()) count += here
  return count
}

/** Number of members and listeners, including absent members. */
export const audienceOf = (state: ChannelState): number =>
  HashMap.size(state.members) + listenersOf(state)

/** Number of sockets that a message reaches on the watching nodes. */
export const reached = (state: ChannelState, isWatching: (node: string) => boolean): number => {
  let count = 0
  for (const { attachment } of HashMap.values(state.members)) {
    if (attachment !== null && isWatching(attachment.node)) count++
  }
  for (const [node, here] of state.listeners) if (isWatching(node)) count += here
  return count
}

/** The entry of a player that has not expired, or undefined. */
export const activeEntry = (
  list: Expirations,
  playerId: string,
  now: number
): { readonly until: number | null } | undefined => {
  const until = list.get(playerId)
  return until === undefined || (until !== null && until <= now) ? undefined : { until }
}

/** A member's permissions, as in `channel_self`. */
export const selfOf = (
  { lists, options }: ChannelState,
  playerId: string,
  now: number
): { readonly canSend: boolean; readonly mutedUntil: string | null } => {
  const muted = activeEntry(lists.muted, playerId, now)
  const maySpeak =
    options.send === "anyone" ||
    (options.send === "speakers" && (lists.speakers.has(playerId) || options.ownerId === playerId))
  return { canSend: maySpeak && muted === undefined, mutedUntil: isoOrNull(muted?.until ?? null) }
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

/** The channel in the server API. */
export const reportOf = (state: ChannelState, now: number): ChannelReport => ({
  channel: settingsView(state.options),
  allow: Array.from(state.lists.allow),
  speakers: Array.from(state.lists.speakers),
  muted: expirationsView(state.lists.muted, now),
  banned: expirationsView(state.lists.banned, now),
  members: membersOf(state).map(playerView),
  anonymousCount: listenersOf(state)
})
