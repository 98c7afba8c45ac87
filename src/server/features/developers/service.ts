/** Developer accounts: sign-up, sign-in, passwords and external identities. */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperCaller } from "#rpc/auth"
import {
  type Developer,
  type DeveloperIdentity,
  type DeveloperSignedIn,
  InviteCredit,
  type Signup
} from "#rpc/developers"
import { normalizeEmail } from "#rpc/email"
import {
  type AlreadyRedeemed,
  EmailTaken,
  InvalidCredentials,
  type InvalidInviteCode,
  type InviteCodeUsed,
  type InviteLimitReached,
  LastLoginMethod,
  NotFound,
  type SignupsClosed,
  Unauthorized,
  type Unavailable
} from "#rpc/errors/codes"
import { newId } from "#rpc/ids"
import { normalizeName } from "#rpc/text"
import { DeveloperRepository, type NewDeveloper } from "#sql/developers/repository"
import { makeTransaction } from "#server/platform/database"
import { emailForms } from "#server/platform/email-forms"
import { Passwords } from "#server/platform/passwords"
import { type Keep, type RepeatError, SpentResponses } from "#server/platform/spent-responses"
import { makeInvites } from "./invites.ts"
import { KeptSession, keptSession, makeRepeatSession, spendingOf } from "./kept-session.ts"
import { makeProofs, type Proof, wrongPassword } from "./reauthentication.ts"
import { DeveloperSessions } from "./sessions.ts"
import { makeSetupToken } from "./setup-token.ts"
import { makeCreateAccount, makeSignups } from "./sign-up.ts"
import { viewOf } from "./view.ts"

type SignupError =
  | EmailTaken
  | InvalidInviteCode
  | InviteCodeUsed
  | InviteLimitReached
  | RepeatError
  | SignupsClosed
  | Unavailable

/** Creates developer accounts and changes how they sign in. With a key, each can be repeated. */
export class DeveloperAccounts extends Context.Service<
  DeveloperAccounts,
  {
    readonly signup: (
      signup: Signup,
      key: string | undefined
    ) => Effect.Effect<DeveloperSignedIn, SignupError>
    /** Returns the same error after the same time for an unknown email and for a wrong password. */
    readonly login: (
      email: string,
      password: string
    ) => Effect.Effect<DeveloperSignedIn, InvalidCredentials | Unavailable>
    readonly me: (caller: DeveloperCaller) => Effect.Effect<Developer, Unauthorized>
    /** Redeems an invite code for its credit. */
    readonly redeemInvite: (
      caller: DeveloperCaller,
      code: string,
      key: string | undefined
    ) => Effect.Effect<
      InviteCredit,
      RepeatError | AlreadyRedeemed | InvalidInviteCode | InviteCodeUsed | InviteLimitReached
    >
    /** Sets a new password and ends all other sessions of the developer. */
    readonly setPassword: (
      caller: DeveloperCaller,
      proof: KeyedProof,
      password: string
    ) => Effect.Effect<Developer, InvalidCredentials | RepeatError | Unauthorized | Unavailable>
    readonly identities: (
      caller: DeveloperCaller
    ) => Effect.Effect<ReadonlyArray<DeveloperIdentity>>
    /**
     * Removes an identity of a provider and returns the others. Refuses to remove the last sign-in
     * method.
     */
    readonly unlink: (
      caller: DeveloperCaller,
      provider: string,
      proof: KeyedProof
    ) => Effect.Effect<
      ReadonlyArray<DeveloperIdentity>,
      InvalidCredentials | RepeatError | LastLoginMethod | NotFound | Unauthorized | Unavailable
    >
    /** Current sign-up policy; `open` until the first account exists. */
    readonly signups: Effect.Effect<"closed" | "invite" | "open">
    /** Whether the next sign-up needs the setup token. */
    readonly setupTokenRequired: Effect.Effect<boolean>
  }
>()("server/features/developers/service/DeveloperAccounts") {
  static readonly layer = Layer.effect(
    DeveloperAccounts,
    Effect.gen(function* () {
      const signup = yield* makeSignup
      const signups = yield* makeSignups
      const redeemInvite = yield* makeRedeemInvite
      const { login, me, setPassword } = yield* makeAccess
      const { isNeeded: setupTokenRequired } = yield* makeSetupToken
      const { identities, unlink } = yield* makeIdentities
      return DeveloperAccounts.of({
        signup,
        signups,
        setupTokenRequired,
        login,
        me,
        redeemInvite,
        setPassword,
        identities,
        unlink
      })
    })
  )
}

const makeSignup = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const { admit, create } = yield* makeCreateAccount
  const passwords = yield* Passwords
  const repeat = (yield* makeRepeatSession)(new EmailTaken())
  const sessions = yield* DeveloperSessions
  const random = yield* SecureRandom.SecureRandom
  const transaction = yield* makeTransaction

  const store = Effect.fnUntraced(function* (
    row: NewDeveloper,
    request: Signup,
    keep: Keep<typeof KeptSession.Type>
  ) {
    const { row: stored, ...invite } = yield* create(row, request)
    const { expiresAt, token } = yield* sessions.create(row.id)
    const session = { token, expiresAt: DateTime.formatIso(expiresAt), ...invite }
    const signedIn: DeveloperSignedIn = { developer: viewOf(stored), ...session }
    yield* keep(keptSession(signedIn))
    return signedIn
  }, transaction)

  const spend = Effect.fnUntraced(
    function* (request: Signup, keep: Keep<typeof KeptSession.Type>) {
      const { email, name, password } = request
      // Check before the expensive password hash. The transaction checks again under its lock.
      yield* admit(request)
      const row: NewDeveloper = {
        id: yield* newId.developer,
        email: normalizeEmail(email),
        name: name === undefined ? null : normalizeName(name),
        passwordHash: yield* passwords.hash(password),
        createdAt: yield* DateTime.now
      }
      return yield* store(row, request, keep)
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )

  return Effect.fn("DeveloperAccounts.signup")(function* (
    request: Signup,
    key: string | undefined
  ) {
    const { email, inviteCode = "", setupToken = "" } = request
    const secret = JSON.stringify([email, inviteCode, setupToken])
    return yield* responses.once(spendingOf(signupPath, secret, request, key), KeptSession, {
      spend: (keep) => spend(request, keep),
      repeat
    })
  })
})

const makeRedeemInvite = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const { redeem } = yield* makeInvites
  const transaction = yield* makeTransaction
  return ({ developerId }: DeveloperCaller, code: string, key: string | undefined) => {
    const secret = JSON.stringify([developerId, code])
    const request = spendingOf("POST /v1/developers/me/invite-code", secret, code, key)
    return responses.once(request, InviteCredit, {
      spend: (keep) => transaction(Effect.tap(redeem(developerId, code), (credit) => keep(credit))),
      repeat: Effect.succeed
    })
  }
})

const signupPath = "POST /v1/developers/signup"

/** A proof with the key by which its request can be repeated. */
interface KeyedProof extends Proof {
  readonly key: string | undefined
}

const proofRequest = (
  path: string,
  { sessionId }: DeveloperCaller,
  { key, password = "", reauthToken = "" }: KeyedProof,
  body: string
) => spendingOf(path, JSON.stringify([sessionId, password, reauthToken]), body, key)

/** Finds the developer row of a session. A deletion may have removed it after the session check. */
const makeRowOf = Effect.map(DeveloperRepository, (repository) =>
  Effect.fnUntraced(function* ({ developerId }: DeveloperCaller) {
    const found = yield* repository.find(developerId)
    return Option.isSome(found) ? found.value : yield* new Unauthorized()
  })
)

const makeAccess = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const repository = yield* DeveloperRepository
  const passwords = yield* Passwords
  const sessions = yield* DeveloperSessions
  const transaction = yield* makeTransaction
  const proofs = yield* makeProofs
  const rowOf = yield* makeRowOf

  const setPassword = Effect.fnUntraced(function* (
    caller: DeveloperCaller,
    proof: Proof,
    password: string,
    keep: Keep<null>
  ) {
    const { developerId, sessionId } = caller
    const row = yield* rowOf(caller)
    yield* proofs.check(row, proof)
    const to = yield* passwords.hash(password)
    const from = row.passwordHash
    yield* transaction(
      Effect.gen(function* () {
        yield* proofs.spend(caller, proof)
        const replaced = yield* repository.replacePassword({ developerId, from, to })
        if (!replaced) return yield* wrongPassword
        yield* repository.endOtherSessions({ developerId, sessionId })
        yield* keep(null)
      })
    )
    return viewOf({ ...row, passwordHash: to })
  })

  return {
    login: Effect.fn("DeveloperAccounts.login")(function* (email: string, password: string) {
      const found = Option.getOrUndefined(yield* repository.findByEmail(emailForms(email)))
      const from = found?.passwordHash ?? null
      const valid = yield* passwords.verify(password, from)
      if (!valid || found === undefined || from === null) return yield* new InvalidCredentials()
      const { id: developerId } = found
      const to = passwords.isOutdated(from) ? yield* passwords.hash(password) : from
      // A concurrent password change fails this sign-in: the old password must not create a session.
      const { expiresAt, token } = yield* transaction(
        Effect.gen(function* () {
          const replaced = yield* repository.replacePassword({ developerId, from, to })
          return replaced ? yield* sessions.create(developerId) : yield* new InvalidCredentials()
        })
      )
      return { developer: viewOf(found), token, expiresAt: DateTime.formatIso(expiresAt) }
    }),
    me: (caller: DeveloperCaller) => Effect.map(rowOf(caller), viewOf),
    setPassword: Effect.fn("DeveloperAccounts.setPassword")(function* (
      caller: DeveloperCaller,
      proof: KeyedProof,
      password: string
    ) {
      const request = proofRequest("POST /v1/developers/me/password", caller, proof, password)
      return yield* responses.once(request, Schema.Null, {
        spend: (keep) => setPassword(caller, proof, password, keep),
        repeat: () => Effect.map(rowOf(caller), viewOf)
      })
    })
  }
})

const makeIdentities = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const repository = yield* DeveloperRepository
  const proofs = yield* makeProofs
  const transaction = yield* makeTransaction
  const rowOf = yield* makeRowOf
  const identities = ({ developerId }: DeveloperCaller) =>
    Effect.map(repository.identities(developerId), (found) =>
      found.map(({ linkedAt, ...identity }) => ({
        ...identity,
        linkedAt: DateTime.formatIso(linkedAt)
      }))
    )
  const remove = Effect.fnUntraced(function* (
    caller: DeveloperCaller,
    provider: string,
    proof: Proof,
    keep: Keep<null>
  ) {
    const { developerId } = caller
    yield* repository.lockAccount(developerId)
    yield* proofs.spend(caller, proof)
    const { passwordHash } = yield* rowOf(caller)
    const linked = yield* repository.identities(developerId)
    if (!linked.some((identity) => identity.provider === provider)) return yield* new NotFound()
    if (linked.length === 1 && passwordHash === null) {
      return yield* new LastLoginMethod({
        message: "This is your last sign-in method. Set a password first."
      })
    }
    yield* repository.unlink({ developerId, provider })
    yield* keep(null)
  }, transaction)
  return {
    identities,
    unlink: Effect.fn("DeveloperAccounts.unlink")(function* (
      caller: DeveloperCaller,
      provider: string,
      proof: KeyedProof
    ) {
      const path = "DELETE /v1/developers/me/identities"
      const request = proofRequest(path, caller, proof, provider)
      return yield* responses.once(request, Schema.Null, {
        spend: Effect.fnUntraced(function* (keep) {
          yield* proofs.check(yield* rowOf(caller), proof)
          yield* remove(caller, provider, proof, keep)
          return yield* identities(caller)
        }),
        repeat: () => identities(caller)
      })
    })
  }
})
