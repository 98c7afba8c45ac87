/**
 * Proofs that the caller owns the account: the password, or the token of a repeated external sign-in.
 * The token works once, for five minutes, in the session that requested it.
 */
import { DateTime, Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperCaller } from "#rpc/auth"
import { InvalidCredentials } from "#rpc/errors/codes"
import type { DeveloperId, DeveloperSessionId } from "#rpc/ids"
import type { DeveloperProvider } from "#rpc/oauth/developers"
import type { DeveloperRow } from "#sql/developers/repository"
import { DeveloperFlowRepository } from "#sql/oauth/developer-flows"
import { Passwords } from "#server/platform/passwords"
import { randomSecret, sha256 } from "#server/platform/secrets"

/** Validity of the proof of a repeated external sign-in. */
const reauthSeconds = 300

/** Proof that the caller is the account's owner: the password, or a fresh external sign-in. */
export interface Proof {
  readonly password?: string | undefined
  readonly reauthToken?: string | undefined
}

const hashOf = (token: string) => sha256(`reauth/${token}`)

export const wrongPassword = Effect.fail(
  new InvalidCredentials({ message: "The current password is wrong." })
)

const invalidToken = new InvalidCredentials({
  message: "The reauthToken is wrong, used or expired. Sign in with the provider again."
})

/** Issues the token that proves a repeated external sign-in. */
export const makeIssueReauthToken = Effect.gen(function* () {
  const flows = yield* DeveloperFlowRepository
  const random = yield* SecureRandom.SecureRandom
  return Effect.fnUntraced(
    function* (
      provider: DeveloperProvider,
      developerId: DeveloperId,
      sessionId: DeveloperSessionId
    ) {
      const reauthToken = yield* randomSecret
      const expiresAt = DateTime.add(yield* DateTime.now, { seconds: reauthSeconds })
      const hash = hashOf(reauthToken)
      const row = { hash, provider, intent: "reauth", developerId, sessionId } as const
      yield* flows.insert({ ...row, sealed: "", expiresAt })
      return { reauthToken, expiresAt: DateTime.formatIso(expiresAt) }
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})

/** Checks of a proof. They fail with `invalid_credentials` unless the proof matches the account. */
export const makeProofs = Effect.gen(function* () {
  const flows = yield* DeveloperFlowRepository
  const passwords = yield* Passwords
  const isToken = ({ password, reauthToken }: Proof) =>
    password === undefined && reauthToken !== undefined
  return {
    /** Verifies a password. A token passes without a check: `spend` verifies it. */
    check: Effect.fnUntraced(function* ({ passwordHash }: DeveloperRow, proof: Proof) {
      if (isToken(proof)) return
      const valid = yield* passwords.verify(proof.password ?? "", passwordHash)
      if (!valid) return yield* wrongPassword
    }),
    /**
     * Spends a token. Call it in the transaction of the change, so that only a committed change spends
     * it.
     */
    spend: Effect.fnUntraced(function* ({ sessionId }: DeveloperCaller, proof: Proof) {
      if (!isToken(proof)) return
      const found = Option.getOrUndefined(yield* flows.take(hashOf(proof.reauthToken ?? "")))
      const now = yield* DateTime.now
      const isValid = found?.sessionId === sessionId && DateTime.isGreaterThan(found.expiresAt, now)
      if (!isValid) return yield* invalidToken
    })
  }
})
