/**
 * Developer accounts: sign-up, sign-in, passwords and external identities. With `SVC_SIGNUPS=closed`
 * the first sign-up of a deployment still succeeds; later ones are closed. In production the first
 * sign-up needs the setup token instead of what `SVC_SIGNUPS` asks for.
 */
import { Context, DateTime, Effect, Layer, Option, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { DeveloperCaller } from "#rpc/auth"
import {
  type Developer,
  type DeveloperIdentity,
  type DeveloperSignedIn,
  type Signup
} from "#rpc/developers"
import { normalizeEmail } from "#rpc/email"
import {
  EmailTaken,
  InvalidCredentials,
  InvalidInviteCode,
  InviteCodeUsed,
  LastLoginMethod,
  NotFound,
  SignupsClosed,
  Unauthorized,
  type Unavailable
} from "#rpc/errors/codes"
import { newId } from "#rpc/ids"
import { normalizeName } from "#rpc/text"
import { type DeveloperRow, DeveloperRepository } from "#sql/developers"
import { makeTransaction } from "#server/platform/database"
import { Passwords } from "#server/platform/passwords"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { DeveloperSessions } from "./sessions.ts"
import { makeSetupToken } from "./setup-token.ts"

type SignupError = SignupsClosed | EmailTaken | InvalidInviteCode | InviteCodeUsed | Unavailable

/** Proof that the caller is the account's owner: the password, or a fresh external sign-in. */
export interface Proof {
  readonly password?: string | undefined
  readonly reauthToken?: string | undefined
}

/** Converts a row to the developer's view of the account. */
const viewOf = ({ createdAt, email, id, name, passwordHash }: DeveloperRow): Developer => ({
  id,
  email,
  name,
  hasPassword: passwordHash !== null,
  createdAt: DateTime.formatIso(createdAt)
})

/** Creates developer accounts and changes how they sign in. */
export class DeveloperAccounts extends Context.Service<
  DeveloperAccounts,
  {
    readonly signup: (signup: Signup) => Effect.Effect<DeveloperSignedIn, SignupError>
    /** Returns the same error after the same time for an unknown email and for a wrong password. */
    readonly login: (
      email: string,
      password: string
    ) => Effect.Effect<DeveloperSignedIn, InvalidCredentials | Unavailable>
    readonly me: (caller: DeveloperCaller) => Effect.Effect<Developer, Unauthorized>
    /** Sets a new password and ends all other sessions of the developer. */
    readonly setPassword: (
      caller: DeveloperCaller,
      proof: Proof,
      password: string
    ) => Effect.Effect<Developer, InvalidCredentials | Unauthorized | Unavailable>
    readonly identities: (
      caller: DeveloperCaller
    ) => Effect.Effect<ReadonlyArray<DeveloperIdentity>>
    /** Removes an external identity and returns the others. The last sign-in method stays. */
    readonly unlink: (
      caller: DeveloperCaller,
      provider: string,
      proof: Proof
    ) => Effect.Effect<
      ReadonlyArray<DeveloperIdentity>,
      InvalidCredentials | LastLoginMethod | NotFound | Unauthorized | Unavailable
    >
    /** The current sign-up policy; `open` until the first account exists. */
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
      const { login, me, setPassword } = yield* makeAccess
      const { isNeeded: setupTokenRequired } = yield* makeSetupToken
      const { identities, unlink } = yield* makeIdentities
      return DeveloperAccounts.of({
        signup,
        signups,
        setupTokenRequired,
        login,
        me,
        setPassword,
        identities,
        unlink
      })
    })
  )
}

/** Reads the sign-up policy: `closed` is `open` until the first account exists. */
const makeSignups = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const { signups } = yield* Settings
  if (signups !== "closed") return Effect.succeed(signups)
  return Effect.map(repository.isEmpty, (isFirst) =>
    isFirst ? ("open" as const) : ("closed" as const)
  )
})

const makeSignup = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const passwords = yield* Passwords
  const sessions = yield* DeveloperSessions
  const settings = yield* Settings
  const random = yield* SecureRandom.SecureRandom
  const sql = yield* SqlClient.SqlClient
  const setupToken = yield* makeSetupToken
  const signups = yield* makeSignups
  const codes = new Set(settings.inviteCodes.map((code) => sha256(Redacted.value(code))))

  /** Returns the hash of a valid invite code; none when no code is given and none is needed. */
  const checkInvite = Effect.fnUntraced(function* ({
    inviteCode: code,
    setupToken: token
  }: Signup) {
    if (yield* setupToken.isNeeded) {
      yield* setupToken.check(token)
      return undefined
    }
    const policy = yield* signups
    if (policy === "closed") return yield* new SignupsClosed()
    if (code === undefined && policy === "open") return undefined
    const codeHash = sha256(code ?? "")
    return codes.has(codeHash) ? codeHash : yield* new InvalidInviteCode()
  })

  const store = Effect.fnUntraced(function* (row: DeveloperRow, request: Signup) {
    yield* repository.lockAccounts
    const codeHash = yield* checkInvite(request)
    if (Option.isSome(yield* repository.findByEmail(row.email))) return yield* new EmailTaken()
    yield* repository.insert(row)
    yield* repository.deleteSetupToken
    if (codeHash === undefined) return
    const use = { codeHash, developerId: row.id, usedAt: row.createdAt }
    if (!(yield* repository.useInvite(use))) return yield* new InviteCodeUsed()
  })

  return Effect.fn("DeveloperAccounts.signup")(
    function* (request: Signup) {
      const { email, name, password } = request
      // Check before the expensive password hash. The transaction checks again under its lock.
      yield* checkInvite(request)
      const row: DeveloperRow = {
        id: yield* newId.developer,
        email: normalizeEmail(email),
        name: name === undefined ? null : normalizeName(name),
        passwordHash: yield* passwords.hash(password),
        createdAt: yield* DateTime.now
      }
      yield* Effect.catchTag(sql.withTransaction(store(row, request)), "SqlError", Effect.die)
      const { expiresAt, token } = yield* sessions.create(row.id)
      return { developer: viewOf(row), token, expiresAt: DateTime.formatIso(expiresAt) }
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})

const wrongPassword = Effect.fail(
  new InvalidCredentials({ message: "The current password is wrong." })
)

/** Fails with `invalid_credentials` unless the proof matches the account. */
const makeVerifyProof = Effect.map(Passwords, (passwords) =>
  Effect.fnUntraced(function* (row: DeveloperRow, { password }: Proof) {
    const valid = yield* passwords.verify(password ?? "", row.passwordHash)
    if (!valid) return yield* wrongPassword
  })
)

/** Finds the row of a session's developer, which may have been deleted after the session was checked. */
const makeRowOf = Effect.map(DeveloperRepository, (repository) =>
  Effect.fnUntraced(function* ({ developerId }: DeveloperCaller) {
    const found = yield* repository.find(developerId)
    return Option.isSome(found) ? found.value : yield* new Unauthorized()
  })
)

const makeAccess = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const passwords = yield* Passwords
  const sessions = yield* DeveloperSessions
  const transaction = yield* makeTransaction
  const verifyProof = yield* makeVerifyProof
  const rowOf = yield* makeRowOf
  return {
    login: Effect.fn("DeveloperAccounts.login")(function* (email: string, password: string) {
      const found = Option.getOrUndefined(yield* repository.findByEmail(normalizeEmail(email)))
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
      proof: Proof,
      password: string
    ) {
      const { developerId, sessionId } = caller
      const row = yield* rowOf(caller)
      yield* verifyProof(row, proof)
      const to = yield* passwords.hash(password)
      yield* transaction(
        Effect.gen(function* () {
          const replaced = yield* repository.replacePassword({
            developerId,
            from: row.passwordHash,
            to
          })
          if (!replaced) return yield* wrongPassword
          yield* repository.endOtherSessions({ developerId, sessionId })
        })
      )
      return viewOf({ ...row, passwordHash: to })
    })
  }
})

const makeIdentities = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const sql = yield* SqlClient.SqlClient
  const verifyProof = yield* makeVerifyProof
  const rowOf = yield* makeRowOf
  const identities = ({ developerId }: DeveloperCaller) =>
    Effect.map(repository.identities(developerId), (found) =>
      found.map(({ linkedAt, ...identity }) => ({
        ...identity,
        linkedAt: DateTime.formatIso(linkedAt)
      }))
    )
  const remove = Effect.fnUntraced(function* (caller: DeveloperCaller, provider: string) {
    const { developerId } = caller
    yield* repository.lockAccount(developerId)
    const { passwordHash } = yield* rowOf(caller)
    const linked = yield* repository.identities(developerId)
    if (!linked.some((identity) => identity.provider === provider)) return yield* new NotFound()
    if (linked.length === 1 && passwordHash === null) {
      return yield* new LastLoginMethod({
        message: "This is your last sign-in method. Set a password first."
      })
    }
    yield* repository.unlink({ developerId, provider })
  })
  return {
    identities,
    unlink: Effect.fn("DeveloperAccounts.unlink")(function* (
      caller: DeveloperCaller,
      provider: string,
      proof: Proof
    ) {
      yield* verifyProof(yield* rowOf(caller), proof)
      yield* Effect.catchTag(sql.withTransaction(remove(caller, provider)), "SqlError", Effect.die)
      return yield* identities(caller)
    })
  }
})
