/** Unlinks identities of players, and ends the sessions on their other devices. */
import { Effect, Option, Schema } from "effect"
import type { PlayerCaller } from "#rpc/auth"
import { InvalidRefreshToken, NotFound } from "#rpc/errors/codes"
import { Method } from "#rpc/identities"
import { IdentityRepository } from "#sql/identities"
import { makeTransaction } from "#server/platform/database"
import { ProviderGrants } from "../oauth/grants.ts"
import { playerView } from "../players/view.ts"
import { Sessions } from "../sessions/service.ts"

const isMethod = Schema.is(Method)

/**
 * Removes an identity. Only the device that sends its current refresh token stays signed in. Revokes
 * the provider's token after the commit.
 */
export const makeUnlink = Effect.gen(function* () {
  const grants = yield* ProviderGrants
  const identities = yield* IdentityRepository
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction

  /** Finds the session of the calling device, which stays open. */
  const callerSession = Effect.fnUntraced(function* (player: PlayerCaller, refreshToken: string) {
    const { playerId, sessionId } = yield* sessions
      .authenticate(player.environmentId, refreshToken)
      .pipe(Effect.catchTag("session_revoked", () => Effect.fail(new InvalidRefreshToken())))
    return playerId === player.playerId ? sessionId : yield* new InvalidRefreshToken()
  })

  const unlink = Effect.fnUntraced(function* (
    player: PlayerCaller,
    provider: string,
    refreshToken: string
  ) {
    const { environmentId, playerId } = player
    // Of two devices that unlink at once, the second finds its session revoked.
    yield* identities.lockPlayer(player)
    const keptSessionId = yield* callerSession(player, refreshToken)
    if (!isMethod(provider)) return yield* new NotFound()
    const collected = yield* grants.collect(environmentId, playerId, provider)
    const remaining = yield* identities.unlink({ ...player, provider })
    if (Option.isNone(remaining)) return yield* new NotFound()
    yield* sessions.revokeAll(environmentId, playerId, keptSessionId)
    return { collected, view: playerView(remaining.value) }
  })

  return Effect.fnUntraced(function* (...request: Parameters<typeof unlink>) {
    const { collected, view } = yield* transaction(unlink(...request))
    yield* grants.revoke(collected)
    return view
  })
})
