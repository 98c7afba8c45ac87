/** Stores players with an open connection as seen, every minute. */
import { Effect, Layer } from "effect"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { Usage } from "#server/platform/usage"
import { Hub } from "#server/links/hub"

interface Connected {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
}

/** Stores the visits of these players every minute, until interrupted. */
export const noteSeen = Effect.fnUntraced(function* (connected: () => ReadonlyArray<Connected>) {
  const usage = yield* Usage
  // A fiber yields by itself, so other work runs in between.
  const noteAll = Effect.suspend(() =>
    Effect.forEach(
      connected(),
      ({ environmentId, playerId }) => usage.playerSeen(environmentId, playerId),
      { discard: true }
    )
  )
  return yield* Effect.sleep("1 minute").pipe(Effect.andThen(noteAll), Effect.forever)
})

export const SeenPlayers = Layer.effectDiscard(
  Effect.gen(function* () {
    const { connections } = yield* Hub
    yield* Effect.forkScoped(noteSeen(() => connections.all))
  })
)
