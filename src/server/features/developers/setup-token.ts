/**
 * The setup token. In production the first developer account needs it, so that a stranger who finds the
 * deployment first cannot take it. It is `SVC_SETUP_TOKEN`, or a token that the first start generates
 * and prints once. The service stores only its hash.
 */
import { DateTime, Effect, Option, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { SignupsClosed } from "#rpc/errors/codes"
import { DeveloperRepository } from "#sql/developers/repository"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"

const refused = new SignupsClosed({
  message:
    "The first account of this deployment needs `setupToken`: the value of SVC_SETUP_TOKEN, or the " +
    "token that the first start of the service printed."
})

/** Whether the next sign-up is the first one and needs the token, and a check of a given token. */
export const makeSetupToken = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const { production, setupToken } = yield* Settings
  const hash =
    setupToken === undefined
      ? repository.setupTokenHash
      : Effect.succeed(Option.some(sha256(Redacted.value(setupToken))))
  return {
    isNeeded: production ? repository.isEmpty : Effect.succeed(false),
    check: Effect.fnUntraced(function* (given: string | undefined) {
      if (given === undefined) return yield* refused
      const isValid = Option.contains(yield* hash, sha256(given))
      if (!isValid) return yield* refused
    })
  }
})

/** Generates the setup token at a start in production, unless it is set, and logs how to sign up. */
export const announceSetupToken = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const { baseUrl, setupToken } = yield* Settings
  if (!(yield* repository.isEmpty)) return
  const how = `POST ${baseUrl}/v1/developers/signup with email, password and setupToken.`
  if (setupToken !== undefined) {
    return yield* Effect.logWarning(
      `No developer account exists. Sign up with the token of SVC_SETUP_TOKEN: ${how}`
    )
  }
  const token = yield* randomSecret
  const createdAt = yield* DateTime.now
  const isNew = yield* repository.insertSetupToken({ hash: sha256(token), createdAt })
  yield* Effect.logWarning(
    isNew
      ? `No developer account exists. The setup token, printed only this once: ${token} Sign up: ${how}`
      : `No developer account exists. Sign up with the setup token that the first start printed: ` +
          `${how} If you do not have it, set SVC_SETUP_TOKEN to one of your own.`
  )
}).pipe(Effect.provide(SecureRandom.layerWebCrypto))
