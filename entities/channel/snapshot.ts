/**
 * Stored form of a channel: its options and lists, without its members. The gateways bring the
 * members back after a move. The writer stores a managed channel before the server API replies, an
 * unmanaged one at most half a second after a change.
 */
import { Effect, Schema } from "effect"
import { ChannelJoin, ChannelSend, ChannelVoice } from "#rpc/channels/frames"
import type { ChannelRow, StoredRow } from "#sql/channels"
import { StoredLink } from "../executed-commands.ts"
import { snapshotFormat } from "../snapshot-format.ts"
import { overdueAt } from "../overdue.ts"
import { withAbsent } from "./absences.ts"
import { activeEntry, type ChannelState, iso, type Member, openChannel } from "./model.ts"

/** The format that this release writes, and the newest that it reads. */
const format = 1

/** Commands executed before the row was written. Rows of older versions lack the field. */
const links = Schema.optionalKey(Schema.Array(StoredLink))

const StoredExpirations = Schema.Array(Schema.Tuple([Schema.String, Schema.NullOr(Schema.Int)]))

/** Members without a connection when the channel left its runner, see `absentOf`. */
const absent = Schema.optionalKey(
  Schema.Array(
    Schema.Struct({
      id: Schema.String,
      displayName: Schema.String,
      joinedAt: Schema.Int,
      absence: Schema.Struct({
        droppedAt: Schema.Int,
        since: Schema.Int,
        waitedMillis: Schema.Int,
        byService: Schema.Boolean
      })
    })
  )
)

const Stored = Schema.fromJsonString(
  Schema.Struct({
    format: snapshotFormat(format),
    ownerId: Schema.NullOr(Schema.String),
    join: ChannelJoin,
    send: ChannelSend,
    open: Schema.Boolean,
    maxMembers: Schema.Int,
    voice: Schema.NullOr(ChannelVoice),
    createdAt: Schema.Int,
    allow: Schema.Array(Schema.String),
    speakers: Schema.Array(Schema.String),
    muted: StoredExpirations,
    banned: StoredExpirations,
    absent,
    /** Time of the row; only where members are absent. */
    writtenAt: Schema.optionalKey(Schema.Int),
    links
  })
)

const decodeStored = Schema.decodeUnknownEffect(Stored)
const encodeStored = Schema.encodeSync(Stored)

/** Restores a channel without connections; its members have 30 seconds to come back. */
export const fromRow = Effect.fnUntraced(function* (
  row: { readonly environmentId: string; readonly name: string } & StoredRow,
  now: number
) {
  const stored = yield* decodeStored(row.document)
  const { absent = [], allow, banned, format: _, links: executed = [], ...rest } = stored
  const { muted, speakers, writtenAt = now, ...settings } = rest
  const { environmentId, managed, name } = row
  const options = { environmentId, name, managed, ...settings }
  const state = openChannel(options, now, {
    allow: new Set(allow),
    speakers: new Set(speakers),
    muted: new Map(muted),
    banned: new Map(banned)
  })
  const members = absent
    .filter(({ id }) => activeEntry(state.lists.banned, id, now) === undefined)
    .map((member) => ({ ...member, attachment: null }))
  const gap = { from: Math.min(writtenAt, now), to: now }
  return { state: withAbsent(state, members, gap), links: executed }
})

const stored = ({ absence, displayName, id, joinedAt }: Member) =>
  absence === null ? [] : [{ id, displayName, joinedAt, absence }]

/** The row of a channel. An unmanaged one is overdue if nobody writes it again in time. */
export const toRow = (
  { lists, options }: ChannelState,
  epoch: number,
  node: string,
  now: number,
  executed: ReadonlyArray<StoredLink> = [],
  absentMembers: ReadonlyArray<Member> = []
): Omit<ChannelRow, "writeNumber"> => {
  const { environmentId, managed, name, ...settings } = options
  return {
    environmentId,
    name,
    epoch,
    node,
    managed,
    dueAt: managed ? null : iso(overdueAt(options.createdAt, now)),
    document: encodeStored({
      format,
      ...settings,
      allow: Array.from(lists.allow),
      speakers: Array.from(lists.speakers),
      muted: Array.from(lists.muted),
      banned: Array.from(lists.banned),
      ...(absentMembers.length === 0
        ? {}
        : { writtenAt: now, absent: absentMembers.flatMap(stored) }),
      links: executed
    })
  }
}
