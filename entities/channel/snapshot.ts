/**
 * Stored form of a channel: its options and lists, without its members. The gateways bring the
 * members back after a move. The writer stores a managed channel before the server API replies, an
 * unmanaged one at most half a second after a change.
 */
import { Effect, Schema } from "effect"
import { ChannelJoin, ChannelSend, ChannelVoice } from "#rpc/channels"
import { channels as limits } from "#rpc/limits"
import type { ChannelRow, StoredRow } from "#sql/channels"
import { StoredLink } from "../executed-commands.ts"
import { snapshotFormat } from "../snapshot-format.ts"
import { overdueAt } from "../overdue.ts"
import { type ChannelState, iso, openChannel } from "./model.ts"

/** The format that this release writes, and the newest that it reads. */
const format = 1

/** Commands executed before the row was written. Rows of older versions lack the field. */
const links = Schema.optionalKey(Schema.Array(StoredLink))

const StoredExpirations = Schema.Array(Schema.Tuple([Schema.String, Schema.NullOr(Schema.Int)]))

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
    links
  })
)

const decodeStored = Schema.decodeUnknownEffect(Stored)
const encodeStored = Schema.encodeSync(Stored)

const emptyMillis = limits.emptySeconds * 1000

/** Restores a channel without members; they have 30 seconds to come back. */
export const fromRow = Effect.fnUntraced(function* (
  row: { readonly environmentId: string; readonly name: string } & StoredRow,
  now: number
) {
  const stored = yield* decodeStored(row.document)
  const { allow, banned, format: _, links: executed = [], muted, speakers, ...settings } = stored
  const { environmentId, managed, name } = row
  const options = { environmentId, name, managed, ...settings }
  const state = openChannel(options, now + emptyMillis, {
    allow: new Set(allow),
    speakers: new Set(speakers),
    muted: new Map(muted),
    banned: new Map(banned)
  })
  return { state, links: executed }
})

/** The row of a channel. An unmanaged one is overdue if nobody writes it again in time. */
export const toRow = (
  { lists, options }: ChannelState,
  epoch: number,
  node: string,
  now: number,
  executed: ReadonlyArray<StoredLink> = []
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
      links: executed
    })
  }
}
