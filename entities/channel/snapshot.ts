/**
 * The stored form of a channel: its settings and lists, never its members, whom the gateways bring
 * back after a move. What the server manages is written before the server's call is answered; a
 * channel of players at most half a second after a change.
 */
import { Effect, Schema } from "effect"
import { ChannelJoin, ChannelSend, ChannelVoice } from "#rpc/channels"
import { channels as limits } from "#rpc/limits"
import type { ChannelRow, StoredRow } from "#sql/channels"
import { type ChannelState, iso, openChannel } from "./model.ts"

const Sentences = Schema.Array(Schema.Tuple([Schema.String, Schema.NullOr(Schema.Int)]))

const Stored = Schema.fromJsonString(
  Schema.Struct({
    ownerId: Schema.NullOr(Schema.String),
    join: ChannelJoin,
    send: ChannelSend,
    open: Schema.Boolean,
    maxMembers: Schema.Int,
    voice: Schema.NullOr(ChannelVoice),
    createdAt: Schema.Int,
    allow: Schema.Array(Schema.String),
    speakers: Schema.Array(Schema.String),
    muted: Sentences,
    banned: Sentences
  })
)

const decodeStored = Schema.decodeUnknownEffect(Stored)
const encodeStored = Schema.encodeSync(Stored)

/** A living channel of players is written at least this often, whether it changed or not. */
export const refreshMillis = 60_000

const emptyMillis = limits.emptySeconds * 1000

/** The channel of a row, empty: who was in has half a minute to come back. */
export const fromRow = Effect.fnUntraced(function* (
  row: { readonly environmentId: string; readonly name: string } & StoredRow,
  now: number
) {
  const stored = yield* decodeStored(row.document)
  const { allow, banned, muted, speakers, ...settings } = stored
  const { environmentId, managed, name } = row
  const options = { environmentId, name, managed, ...settings }
  return openChannel(options, now + emptyMillis, {
    allow: new Set(allow),
    speakers: new Set(speakers),
    muted: new Map(muted),
    banned: new Map(banned)
  })
})

/** The row of a channel as it is at a time. One of players that is not written again has no owner. */
export const toRow = (
  { lists, options }: ChannelState,
  epoch: number,
  node: string,
  now: number
): ChannelRow => {
  const { environmentId, managed, name, ...settings } = options
  return {
    environmentId,
    name,
    epoch,
    node,
    managed,
    dueAt: managed ? null : iso(now + 2 * refreshMillis),
    document: encodeStored({
      ...settings,
      allow: Array.from(lists.allow),
      speakers: Array.from(lists.speakers),
      muted: Array.from(lists.muted),
      banned: Array.from(lists.banned)
    })
  }
}
