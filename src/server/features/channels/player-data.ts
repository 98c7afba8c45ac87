/** Channels in the export and the deletion of a player: those with the player on a list. */
import { Effect } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { ChannelRepository } from "#sql/channels"
import type { PlayerKey } from "#server/platform/player-parts"
import { Channels } from "./service.ts"

/** Operations that remove a player from every list of a channel. */
const unlistOps = ["uninvite", "disallowSend", "unmute", "unban"] as const

const channelTimeout = "5 seconds"

/** Reads the names of a player's channels, and removes the player from their lists. */
export const channelsOfPlayer = Effect.gen(function* () {
  const channels = yield* Channels
  const repository = yield* ChannelRepository

  /** Only the channel entity may change its document, so this calls the entity. */
  const unlist = (environmentId: string, name: string, target: string) =>
    Effect.forEach(unlistOps, (op) => channels.of(environmentId, name).Moderate({ target, op }), {
      discard: true
    }).pipe(
      Effect.catchTag("channel_not_found", () => Effect.void),
      Effect.timeout(channelTimeout),
      Effect.catch(() => Effect.fail(new Unavailable()))
    )

  return {
    read: ({ environmentId, playerId }: PlayerKey) =>
      Effect.map(repository.withPlayer(environmentId, playerId), (names) => ({ channels: names })),
    // Before the player row goes: after a failure, a retry still finds the player and its channels.
    leave: Effect.fnUntraced(function* ({ environmentId, playerId }: PlayerKey) {
      const names = yield* repository.withPlayer(environmentId, playerId)
      yield* Effect.forEach(names, (name) => unlist(environmentId, name, playerId), {
        discard: true
      })
      return Effect.void
    })
  }
})
