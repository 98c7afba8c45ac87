/**
 * Stored form of a room, from which another node activates it. It includes the attachments, so
 * members whose gateway survives keep their seats.
 */
import { Schema } from "effect"
import type { RoomRow } from "#sql/rooms"
import { CloseReason, AcceptedJsonObject } from "#rpc/rooms"
import { iso, isListed, type RoomState } from "./model.ts"
import { roomSettingsFields } from "./messages.ts"
import { StoredLink } from "../executed-commands.ts"
import { snapshotFormat } from "../snapshot-format.ts"
import { overdueAt } from "../overdue.ts"
import { nextDeadline } from "./seats.ts"
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
  absentSince: Schema.NullOr(Schema.Int),
  announceAt: Schema.NullOr(Schema.Int),
  announced: Schema.Boolean
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
    /** Commands executed before the snapshot. Snapshots of older versions lack the field. */
    links: Schema.optionalKey(Schema.Array(StoredLink))
  })
)

const decodeStored = Schema.decodeUnknownEffect(Stored)

/** Decodes the JSON text of a snapshot. */
export const decodeSnapshot = (text: string) => decodeStored(text)

type StoredRoom = typeof Stored.Type

export const fromStored = ({ format: _, links: __, ...stored }: StoredRoom): RoomState => ({
  ...stored,
  sharedState: fromJsonObject(stored.sharedState),
  members: new Map(
    stored.members.map((member) => [
      member.id,
      { ...member, playerState: fromJsonObject(member.playerState) }
    ])
  )
})

const toStored = (state: RoomState, links: ReadonlyArray<StoredLink>): StoredRoom => ({
  format,
  ...state,
  links,
  sharedState: toJsonObject(state.sharedState),
  members: Array.from(state.members.values(), (member) => ({
    ...member,
    playerState: toJsonObject(member.playerState)
  }))
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
  snapshot: JSON.stringify(toStored(state, links))
})
