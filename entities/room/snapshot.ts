/**
 * Stored form of a room, from which another node activates it. It includes the attachments, so
 * members whose gateway survives keep their seats.
 */
import { Schema } from "effect"
import type { RoomRow } from "#sql/rooms"
import { VoteOp } from "#rpc/config-document/authority"
import { CloseReason } from "#rpc/rooms/events"
import { AcceptedJsonObject } from "#rpc/json"
import { awaken } from "./absences.ts"
import { iso, isListed, type Member, type RoomState } from "./model.ts"
import { roomSettingsFields } from "./messages.ts"
import { StoredLink } from "../executed-commands.ts"
import { unknownBlocks } from "../reach.ts"
import { snapshotFormat } from "../snapshot-format.ts"
import { overdueAt } from "../overdue.ts"
import { nextDeadline } from "./seats.ts"
import { noRights, type Rights } from "./rights.ts"
import { fromJsonObject, toJsonObject } from "./json-state.ts"

/** The format that this release writes, and the newest that it reads. */
const format = 1

const Settings = Schema.Struct({
  ...roomSettingsFields,
  id: Schema.String,
  code: Schema.String,
  createdAt: Schema.Int
})

const StoredMember = Schema.Struct({
  id: Schema.String,
  displayName: Schema.String,
  relayOnly: Schema.Boolean,
  joinedAt: Schema.Int,
  playerState: AcceptedJsonObject,
  attachment: Schema.NullOr(Schema.Struct({ node: Schema.String, connectionId: Schema.String })),
  joinDeadline: Schema.NullOr(Schema.Int),
  /** Only of a player who has not joined; an older runner starts a grace at the deadline. */
  arrived: Schema.optionalKey(Schema.Literal(false)),
  /** Start of the grace. The fields below it are missing in snapshots of release 0.1. */
  absentSince: Schema.NullOr(Schema.Int),
  droppedAt: Schema.optionalKey(Schema.Int),
  waitedMillis: Schema.optionalKey(Schema.Int),
  byService: Schema.optionalKey(Schema.Boolean),
  seenAt: Schema.optionalKey(Schema.Int),
  announceAt: Schema.NullOr(Schema.Int),
  announced: Schema.Boolean,
  team: Schema.optionalKey(Schema.String)
})

const optionalId = Schema.optionalKey(Schema.String)

/** What players have done with their rights; release 0.1 has no such rooms. */
const StoredRights = Schema.Struct({
  bars: Schema.Array(Schema.Tuple([Schema.String, Schema.NullOr(Schema.Int)])),
  muted: Schema.Array(Schema.String),
  votesHeld: Schema.Int,
  vote: Schema.optionalKey(
    Schema.Struct({
      id: Schema.String,
      op: VoteOp,
      starterId: Schema.String,
      targetId: optionalId,
      ballots: Schema.Array(Schema.Tuple([Schema.String, Schema.NullOr(Schema.Boolean)])),
      needed: Schema.Int,
      endsAt: Schema.Int,
      restMillis: Schema.Int
    })
  ),
  rests: Schema.Array(
    Schema.Struct({
      op: VoteOp,
      starterId: Schema.String,
      targetId: optionalId,
      until: Schema.Int
    })
  )
})

const Stored = Schema.fromJsonString(
  Schema.Struct({
    format: snapshotFormat(format),
    settings: Settings,
    locked: Schema.Boolean,
    hostId: Schema.NullOr(Schema.String),
    sharedState: AcceptedJsonObject,
    version: Schema.Int,
    members: Schema.Array(StoredMember),
    lastFrameAt: Schema.Int,
    closed: Schema.NullOr(CloseReason),
    /** Absent while nobody has used any right. */
    rights: Schema.optionalKey(StoredRights),
    teamsVersion: Schema.optionalKey(Schema.Int),
    /** Missing in snapshots of release 0.1, like `writtenAt`. */
    heldSince: Schema.optionalKey(Schema.NullOr(Schema.Int)),
    writtenAt: Schema.optionalKey(Schema.Int),
    /** Commands executed before the snapshot. Snapshots of older versions lack the field. */
    links: Schema.optionalKey(Schema.Array(StoredLink))
  })
)

const decodeStored = Schema.decodeUnknownEffect(Stored)

/** Decodes the JSON text of a snapshot. */
export const decodeSnapshot = (text: string) => decodeStored(text)

type StoredRoom = typeof Stored.Type

type StoredMember = typeof StoredMember.Type

const absenceFrom = (member: StoredMember): Member["absence"] => {
  const { absentSince: since, byService = false, droppedAt, waitedMillis = 0 } = member
  return since === null ? null : { droppedAt: droppedAt ?? since, since, waitedMillis, byService }
}

const memberFrom = (member: StoredMember): Member => {
  const { absentSince: _, byService: __, droppedAt: ___, waitedMillis: ____, ...kept } = member
  return {
    ...kept,
    arrived: member.arrived ?? true,
    seenAt: member.seenAt ?? null,
    blocks: unknownBlocks,
    absence: absenceFrom(member),
    playerState: fromJsonObject(member.playerState)
  }
}

const toStoredMember = ({
  absence,
  arrived,
  blocks: _,
  playerState,
  seenAt,
  ...member
}: Member): StoredMember => ({
  ...member,
  ...(arrived ? {} : { arrived }),
  playerState: toJsonObject(playerState),
  ...(seenAt === null ? {} : { seenAt }),
  absentSince: absence?.since ?? null,
  ...(absence === null
    ? {}
    : {
        droppedAt: absence.droppedAt,
        waitedMillis: absence.waitedMillis,
        byService: absence.byService
      })
})

const toStoredRights = ({
  bars,
  muted,
  rests,
  vote,
  votesHeld
}: Rights): typeof StoredRights.Type => ({
  bars: Array.from(bars),
  muted: Array.from(muted),
  votesHeld,
  ...(vote === null ? {} : { vote: { ...withTarget(vote), ballots: Array.from(vote.ballots) } }),
  rests: rests.map(withTarget)
})

/** Leaves out the target of what has none. */
const withTarget = <A extends { readonly targetId: string | null }>({ targetId, ...rest }: A) => ({
  ...rest,
  ...(targetId === null ? {} : { targetId })
})

const rightsFrom = ({ bars, muted, rests, vote, votesHeld }: typeof StoredRights.Type): Rights => ({
  bars: new Map(bars),
  muted: new Set(muted),
  votesHeld,
  vote:
    vote === undefined
      ? null
      : { ...vote, targetId: vote.targetId ?? null, ballots: new Map(vote.ballots) },
  rests: rests.map((rest) => ({ ...rest, targetId: rest.targetId ?? null }))
})

/** Time of the snapshot. One of release 0.1 does not say it: the last drop is not later. */
const writtenAtOf = ({ members, writtenAt }: StoredRoom, now: number): number => {
  if (writtenAt !== undefined) return writtenAt
  const drops = members.flatMap(({ absentSince }) => absentSince ?? [])
  return drops.length === 0 ? now : Math.max(...drops)
}

/** The state that a snapshot holds, as of its time. */
export const fromStored = (stored: StoredRoom): RoomState => {
  const { format: _, links: __, writtenAt: ___, ...room } = stored
  return {
    ...room,
    heldSince: room.heldSince ?? null,
    rights: room.rights === undefined ? noRights : rightsFrom(room.rights),
    teamsVersion: room.teamsVersion ?? 0,
    wokenAt: room.settings.createdAt,
    sharedState: fromJsonObject(room.sharedState),
    members: new Map(room.members.map((member) => [member.id, memberFrom(member)]))
  }
}

/** The state of a room that wakes now, after it was on no runner since its snapshot. */
export const wakeFrom = (stored: StoredRoom, now: number): RoomState =>
  awaken(fromStored(stored), writtenAtOf(stored, now), now)

const toStored = (
  { rights, teamsVersion, wokenAt: _, ...state }: RoomState,
  writtenAt: number,
  links: ReadonlyArray<StoredLink>
): StoredRoom => ({
  format,
  ...state,
  ...(rights === noRights ? {} : { rights: toStoredRights(rights) }),
  ...(teamsVersion === 0 ? {} : { teamsVersion }),
  writtenAt,
  links,
  sharedState: toJsonObject(state.sharedState),
  members: Array.from(state.members.values(), toStoredMember)
})

/** The row of a room. It is overdue if nobody writes it again in time. */
export const toRow = (
  state: RoomState,
  epoch: number,
  node: string,
  now: number,
  links: ReadonlyArray<StoredLink> = []
): RoomRow => ({
  id: state.settings.id,
  environmentId: state.settings.environmentId,
  epoch,
  node,
  code: state.settings.code,
  mode: state.settings.mode,
  listed: isListed(state),
  matched: state.settings.matched,
  maxPlayers: state.settings.maxPlayers,
  metadata: JSON.stringify(state.settings.metadata),
  createdAt: iso(state.settings.createdAt),
  dueAt: iso(Math.min(nextDeadline(state), overdueAt(state.settings.createdAt, now))),
  members: Array.from(state.members.keys()),
  hostId: state.hostId,
  snapshot: JSON.stringify(toStored(state, now, links))
})
