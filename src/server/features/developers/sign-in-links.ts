/**
 * One-time links that sign in the developer of the demo project, outside production only. The start line
 * and the start page show them to people at this machine. Every runner accepts them.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperSignedIn } from "#rpc/developers"
import { InvalidCredentials } from "#rpc/errors/codes"
import { developers as limits } from "#rpc/limits"
import { DeveloperRepository } from "#sql/developers/repository"
import { SignInLinkRepository } from "#sql/developers/sign-in-links"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { DeveloperSessions } from "./sessions.ts"
import { viewOf } from "./view.ts"

/** The developer of the demo project. */
export const demoEmail = "demo@localhost"

const expired = new InvalidCredentials({
  message: "This link was used or has expired. Sign in with email and password."
})

export class SignInLinks extends Context.Service<
  SignInLinks,
  {
    /** Creates a link and returns its code; none in production or without a demo developer. */
    readonly create: Effect.Effect<Option.Option<string>>
    /** Signs in with the code of a link. A code works once. */
    readonly use: (code: string) => Effect.Effect<DeveloperSignedIn, InvalidCredentials>
  }
>()("server/features/developers/sign-in-links/SignInLinks") {
  static readonly layer = Layer.effect(
    SignInLinks,
    Effect.gen(function* () {
      const repository = yield* DeveloperRepository
      const sessions = yield* DeveloperSessions
      const random = yield* SecureRandom.SecureRandom
      const { production } = yield* Settings
      const links = yield* SignInLinkRepository
      const demo = repository.findByEmail(demoEmail)
      return SignInLinks.of({
        create: Effect.gen(function* () {
          if (production || Option.isNone(yield* demo)) return Option.none()
          const code = yield* randomSecret
          const expiresAt = DateTime.add(yield* DateTime.now, { seconds: limits.signInLinkSeconds })
          yield* links.insert({ hash: sha256(code), expiresAt }, limits.signInLinksMax)
          return Option.some(code)
        }).pipe(Effect.provideService(SecureRandom.SecureRandom, random)),
        use: Effect.fn("SignInLinks.use")(function* (code) {
          const now = yield* DateTime.now
          const workingUntil = yield* links.take(sha256(code))
          const isExpired = Option.match(workingUntil, {
            onNone: () => true,
            onSome: DateTime.isLessThan(now)
          })
          if (isExpired) return yield* expired
          const developer = yield* demo
          if (Option.isNone(developer)) return yield* expired
          const { expiresAt, token } = yield* sessions.create(developer.value.id)
          const signedIn = { developer: viewOf(developer.value), token }
          return { ...signedIn, expiresAt: DateTime.formatIso(expiresAt) }
        })
      })
    })
  )
}
