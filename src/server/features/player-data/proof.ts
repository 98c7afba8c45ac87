/**
 * That it is the player who wants to be deleted, and not whoever has found an open app (spec section
 * 3, decisions 3.2.12): a player with an email shows its password, any other the refresh token of an
 * open session. What is wrong is never said; only wrong proofs count against the pace.
 */
import { Effect } from "effect"
import { InvalidCredentials } from "#rpc/errors/codes"
import { throttles as paces } from "#rpc/limits"
import type { DeletionProof } from "#rpc/player-data"
import { IdentityRepository } from "#sql/identities"
import { Passwords } from "#server/platform/passwords"
import { countFailures } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import type { PlayerRef } from "../moderation/service.ts"
import { Sessions } from "../sessions/service.ts"

/** Fails unless the proof is the player's. */
export const makeRequireProof = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const sessions = yield* Sessions
  const throttles = yield* Throttles

  const holds = (player: PlayerRef, refreshToken: string | undefined) =>
    refreshToken === undefined
      ? Effect.succeed(false)
      : sessions.authenticate(player.environmentId, refreshToken).pipe(
          Effect.map(({ playerId }) => playerId === player.playerId),
          Effect.catch(() => Effect.succeed(false))
        )

  const isProof = Effect.fnUntraced(function* (
    player: PlayerRef,
    { password, refreshToken }: DeletionProof
  ) {
    const linked = yield* identities.ofPlayer(player)
    const email = linked.find(({ provider }) => provider === "email")
    if (email === undefined) return yield* holds(player, refreshToken)
    return password !== undefined && (yield* passwords.verify(password, email.passwordHash))
  })

  const prove = Effect.fnUntraced(function* (player: PlayerRef, proof: DeletionProof) {
    if (yield* isProof(player, proof)) return
    return yield* new InvalidCredentials({ message: "The password or the token is wrong." })
  })

  return (player: PlayerRef, proof: DeletionProof) => {
    const guard = countFailures(throttles, [
      [paces.deletionPerPlayer, `deletion:${player.playerId}`]
    ])
    return guard(prove(player, proof))
  }
})
