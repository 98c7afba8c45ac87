/**
 * Proof for a player's deletion of itself, so that an unlocked device alone does not suffice. A player
 * with an email identity sends the password, any other the refresh token of an open session. The error
 * never says which one was wrong. Only wrong proofs count against the limit.
 */
import { Effect } from "effect"
import { InvalidCredentials } from "#rpc/errors/codes"
import type { DeletionProof } from "#rpc/player-data"
import { IdentityRepository } from "#sql/identities"
import { Passwords } from "#server/platform/passwords"
import { countFailures } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import type { PlayerRef } from "../moderation/service.ts"
import { Sessions } from "../sessions/service.ts"

/** Failed confirmations of a player's deletion. */
const deletionPerPlayer = { burst: 10, seconds: 900 } as const

/** Fails unless the proof belongs to the player. */
export const makeRequireProof = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const sessions = yield* Sessions
  const throttles = yield* Throttles

  const ownsToken = (player: PlayerRef, refreshToken: string | undefined) =>
    refreshToken === undefined
      ? Effect.succeed(false)
      : sessions.authenticate(player.environmentId, refreshToken).pipe(
          Effect.map(({ playerId }) => playerId === player.playerId),
          Effect.catch(() => Effect.succeed(false))
        )

  const isValid = Effect.fnUntraced(function* (
    player: PlayerRef,
    { password, refreshToken }: DeletionProof
  ) {
    const linked = yield* identities.ofPlayer(player)
    const email = linked.find(({ provider }) => provider === "email")
    if (email === undefined) return yield* ownsToken(player, refreshToken)
    return password !== undefined && (yield* passwords.verify(password, email.passwordHash))
  })

  const requireProof = Effect.fnUntraced(function* (player: PlayerRef, proof: DeletionProof) {
    if (yield* isValid(player, proof)) return
    return yield* new InvalidCredentials({ message: "The password or the refresh token is wrong." })
  })

  return (player: PlayerRef, proof: DeletionProof) => {
    const guard = countFailures(throttles, [[deletionPerPlayer, `deletion:${player.playerId}`]])
    return guard(requireProof(player, proof))
  }
})
