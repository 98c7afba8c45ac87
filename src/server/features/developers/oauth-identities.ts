/**
 * External identities of developers. Signs in the owner of an identity, creates an account for a new
 * identity, or links it to the developer of a session. It also proves that developer again. The service
 * never finds an account by email.
 */
import { DateTime, Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { developerNameMaxCharacters } from "#rpc/developers"
import { normalizeEmail } from "#rpc/email"
import {
  IdentityAlreadyLinked,
  InvalidCredentials,
  EmailTaken,
  Unauthorized
} from "#rpc/errors/codes"
import { type DeveloperId, newId } from "#rpc/ids"
import type { DeveloperProvider } from "#rpc/oauth/developers"
import type { SignInError } from "#rpc/oauth/sign-in"
import { nameFrom } from "#rpc/text"
import { DeveloperRepository, type NewDeveloper } from "#sql/developers/repository"
import { makeTransaction } from "#server/platform/database"
import { invalidField } from "#server/platform/invalid-request"
import type { ProviderProfile } from "../oauth/profiles.ts"
import type { DeveloperFlow } from "./oauth-flows.ts"
import { makeConfirmEmail } from "./email-confirmation.ts"
import { makeIssueReauthToken } from "./reauthentication.ts"
import { DeveloperSessions } from "./sessions.ts"
import { type Invitation, makeCreateAccount } from "./sign-up.ts"
import { viewOf } from "./view.ts"

const ofAnotherDeveloper = new IdentityAlreadyLinked({
  message: "This external account belongs to another developer."
})

const anotherOfProvider = new IdentityAlreadyLinked({
  message: "Another account of this provider is linked. Unlink that one first."
})

const notLinked = new InvalidCredentials({
  message: "This external account is not linked to the developer of the session."
})

const noEmail = invalidField(
  "code",
  "The provider named no verified email address, which a new account needs. Verify one at the " +
    "provider and sign in again."
)

const emailTaken = new EmailTaken({
  message:
    "An account with this email already exists. Sign in to it, and link this provider in its settings."
})

/** Creates the account of a new external identity. */
const makeSignUp = Effect.gen(function* () {
  const confirmEmail = yield* makeConfirmEmail
  const { create } = yield* makeCreateAccount
  const repository = yield* DeveloperRepository
  const random = yield* SecureRandom.SecureRandom
  return Effect.fnUntraced(
    function* (
      provider: DeveloperProvider,
      { email, emailVerified, name, subject, username }: ProviderProfile,
      invitation: Invitation
    ) {
      if (email === null || !emailVerified) return yield* noEmail
      const createdAt = yield* DateTime.now
      const row: NewDeveloper = {
        id: yield* newId.developer,
        email: normalizeEmail(email),
        name: nameFrom(name ?? "", developerNameMaxCharacters) ?? null,
        passwordHash: null,
        createdAt
      }
      const profile = { subject, email, username }
      const identity = { provider, developerId: row.id, linkedAt: createdAt, ...profile }
      const linkNew = Effect.gen(function* () {
        if (!(yield* repository.link(identity))) return yield* ofAnotherDeveloper
        yield* confirmEmail(row.id, row.email)
      })
      return yield* create(row, invitation, linkNew)
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})

const makeSignIn = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const sessions = yield* DeveloperSessions
  const signUp = yield* makeSignUp
  const transaction = yield* makeTransaction

  /** Signs in the owner of an identity; none if the identity has no owner. */
  const signInOwner = Effect.fnUntraced(function* (
    provider: DeveloperProvider,
    { email, subject, username }: ProviderProfile
  ) {
    const owner = yield* repository.findByIdentity({ provider, subject })
    if (Option.isNone(owner)) return Option.none()
    // An unlink at the same time waits, or has removed the identity.
    yield* repository.lockAccount(owner.value.id)
    const still = yield* repository.findByIdentity({ provider, subject })
    if (Option.isNone(still)) return Option.none()
    yield* repository.updateProfile({ provider, subject, email, username })
    return Option.some({ row: still.value, session: yield* sessions.create(still.value.id) })
  }, transaction)

  return Effect.fnUntraced(function* (
    provider: DeveloperProvider,
    profile: ProviderProfile,
    invitation: Invitation
  ) {
    const ignored =
      invitation.inviteCode === undefined ? {} : { invite: { ignored: true as const } }
    const owner = signInOwner(provider, profile)
    const signedUp = Effect.gen(function* () {
      const created = yield* signUp(provider, profile, invitation)
      return { ...created, session: yield* sessions.create(created.row.id) }
    })
    const signedIn = (error: EmailTaken | IdentityAlreadyLinked) =>
      Effect.flatMap(owner, (found) =>
        Option.isSome(found)
          ? Effect.succeed({ ...found.value, ...ignored })
          : Effect.fail(error._tag === "email_taken" ? emailTaken : error)
      )
    const { row, session, ...invite } = yield* Effect.flatMap(owner, (found) =>
      Option.isSome(found)
        ? Effect.succeed({ ...found.value, ...ignored })
        : // Another first sign-in with the same identity may have created the account meanwhile.
          Effect.catchTag(signedUp, ["email_taken", "identity_already_linked"], signedIn)
    )
    return {
      developer: viewOf(row),
      token: session.token,
      expiresAt: DateTime.formatIso(session.expiresAt),
      ...invite
    }
  })
})

const makeLink = Effect.gen(function* () {
  const confirmEmail = yield* makeConfirmEmail
  const list = yield* makeList
  const repository = yield* DeveloperRepository
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (
    { developerId, provider }: DeveloperFlow,
    { email, emailVerified, subject, username }: ProviderProfile
  ) {
    if (developerId === null) return yield* new Unauthorized()
    yield* repository.lockAccount(developerId)
    const linkedAt = yield* DateTime.now
    const identity = { provider, subject, email, username, developerId, linkedAt }
    if (!(yield* repository.link(identity))) {
      const owner = Option.getOrUndefined(yield* repository.findByIdentity({ provider, subject }))
      if (owner === undefined) return yield* anotherOfProvider
      if (owner.id !== developerId) return yield* ofAnotherDeveloper
      yield* repository.updateProfile({ provider, subject, email, username })
    }
    const own = Option.getOrUndefined(yield* repository.find(developerId))
    if (email !== null && emailVerified && own !== undefined) {
      const isOwn = normalizeEmail(own.email) === normalizeEmail(email)
      if (isOwn) yield* confirmEmail(developerId, own.email)
    }
    return { developerId, identities: yield* list(developerId) }
  }, transaction)
})

/** Lists the external accounts of a developer, as the API shows them. */
const makeList = Effect.map(
  DeveloperRepository,
  (repository) => (developerId: DeveloperId) =>
    Effect.map(repository.identities(developerId), (identities) =>
      identities.map((each) => ({ ...each, linkedAt: DateTime.formatIso(each.linkedAt) }))
    )
)

/** Operations of a verified external identity, and a prediction of a flow's error. */
export const makeIdentities = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const issueReauthToken = yield* makeIssueReauthToken
  return {
    signIn: yield* makeSignIn,
    link: yield* makeLink,
    list: yield* makeList,
    /** Issues a proof if the identity belongs to the developer of the session. */
    prove: Effect.fnUntraced(function* (
      { developerId, provider, sessionId }: DeveloperFlow,
      { subject }: ProviderProfile
    ) {
      const owner = Option.getOrUndefined(yield* repository.findByIdentity({ provider, subject }))
      if (sessionId === null || owner === undefined || owner.id !== developerId) {
        return yield* notLinked
      }
      return yield* issueReauthToken(provider, owner.id, sessionId)
    }),
    /** Predicts the error of a link without changing anything. */
    precheck: Effect.fnUntraced(function* (
      { developerId, intent, provider }: DeveloperFlow,
      { subject }: ProviderProfile
    ) {
      if (intent !== "link") return undefined
      const owner = Option.getOrUndefined(yield* repository.findByIdentity({ provider, subject }))
      const error: SignInError = "identity_already_linked"
      return owner === undefined || owner.id === developerId ? undefined : error
    })
  }
})
