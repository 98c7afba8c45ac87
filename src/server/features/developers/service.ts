/**
 * Developers' accounts (spec section 4.9, decisions 3.13.1): signing up, signing in, the password. The
 * first account of a deployment is whoever comes first; after it `SVC_SIGNUPS` decides.
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
import { type DeveloperRow, DeveloperRepository } from "#sql/developers"
import { makeTransaction } from "#server/platform/database"
import { Passwords } from "#server/platform/passwords"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { DeveloperSessions } from "./sessions.ts"

type SignupError = SignupsClosed | EmailTaken | InvalidInviteCode | InviteCodeUsed | Unavailable

/** What somebody shows to prove who it is. */
export interface Proof {
  readonly password?: string | undefined
  readonly reauthToken?: string | undefined
}

/** A developer as the developer sees it. */
const viewOf = ({ createdAt, email, id, name, passwordHash }: DeveloperRow): Developer => ({
  id,
  email,
  name,
  hasPassword: passwordHash !== null,
  createdAt: DateTime.formatIso(createdAt)
})

export class DeveloperAccounts extends Context.Service<
  DeveloperAccounts,
  {
    readonly signup: (signup: Signup) => Effect.Effect<DeveloperSignedIn, SignupError>
    /** One error for whatever is wrong, after the same time. */
    readonly login: (
      email: string,
      password: string
    ) => Effect.Effect<DeveloperSignedIn, InvalidCredentials | Unavailable>
    readonly me: (caller: DeveloperCaller) => Effect.Effect<Developer, Unauthorized>
    /** A new password; every other session of the developer ends. */
    readonly setPassword: (
      caller: DeveloperCaller,
      proof: Proof,
      password: string
    ) => Effect.Effect<Developer, InvalidCredentials | Unauthorized | Unavailable>
    readonly identities: (
      caller: DeveloperCaller
    ) => Effect.Effect<ReadonlyArray<DeveloperIdentity>>
    /** Removes an external identity; the others. The last way to sign in stays. */
    readonly unlink: (
      caller: DeveloperCaller,
      provider: string,
      proof: Proof
    ) => Effect.Effect<
      ReadonlyArray<DeveloperIdentity>,
      InvalidCredentials | LastLoginMethod | NotFound | Unauthorized | Unavailable
    >
    /** Who may sign up right now. */
    readonly signups: Effect.Effect<"closed" | "invite" | "open">
  }
>()("server/features/developers/service/DeveloperAccounts") {
  static readonly layer = Layer.effect(
    DeveloperAccounts,
    Effect.gen(function* () {
      const signup = yield* makeSignup
      const signups = yield* makeSignups
      const { login, me, setPassword } = yield* makeAccess
      const { identities, unlink } = yield* makeIdentities
      return DeveloperAccounts.of({ signup, signups, login, me, setPassword, identities, unlink })
    })
  )
}

/** Who may sign up: the first one always may, unless only those with a code do. */
const makeSignups = Effect.gen(function* () {
  const rows = yield* DeveloperRepository
  const { signups } = yield* Settings
  if (signups !== "closed") return Effect.succeed(signups)
  return Effect.map(rows.isEmpty, (first) => (first ? ("open" as const) : ("closed" as const)))
})

const makeSignup = Effect.gen(function* () {
  const rows = yield* DeveloperRepository
  const passwords = yield* Passwords
  const sessions = yield* DeveloperSessions
  const settings = yield* Settings
  const random = yield* SecureRandom.SecureRandom
  const sql = yield* SqlClient.SqlClient
  const signups = yield* makeSignups
  const codes = new Set(settings.inviteCodes.map((code) => sha256(Redacted.value(code))))

  /** The hash of a code that may be used; none where none is given or needed. */
  const invited = Effect.fnUntraced(function* (code: string | undefined) {
    const policy = yield* signups
    if (policy === "closed") return yield* new SignupsClosed()
    if (code === undefined && policy === "open") return undefined
    const codeHash = sha256(code ?? "")
    return codes.has(codeHash) ? codeHash : yield* new InvalidInviteCode()
  })

  const store = Effect.fnUntraced(function* (row: DeveloperRow, inviteCode: string | undefined) {
    yield* rows.serialize
    const codeHash = yield* invited(inviteCode)
    if (Option.isSome(yield* rows.findByEmail(row.email))) return yield* new EmailTaken()
    yield* rows.insert(row)
    if (codeHash === undefined) return
    const use = { codeHash, developerId: row.id, usedAt: row.createdAt }
    if (!(yield* rows.useInvite(use))) return yield* new InviteCodeUsed()
  })

  return Effect.fn("DeveloperAccounts.signup")(
    function* ({ email, inviteCode, name, password }: Signup) {
      // Nobody hashes for those who are not let in; whether they still are is asked again below.
      yield* invited(inviteCode)
      const row: DeveloperRow = {
        id: yield* newId.developer,
        email: normalizeEmail(email),
        name: name ?? null,
        passwordHash: yield* passwords.hash(password),
        createdAt: yield* DateTime.now
      }
      yield* Effect.catchTag(sql.withTransaction(store(row, inviteCode)), "SqlError", Effect.die)
      const { expiresAt, token } = yield* sessions.create(row.id)
      return { developer: viewOf(row), token, expiresAt: DateTime.formatIso(expiresAt) }
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})

const wrongPassword = Effect.fail(new InvalidCredentials({ message: "The password is wrong." }))

/** Whether somebody is the developer of a row. */
const makeProve = Effect.map(Passwords, (passwords) =>
  Effect.fnUntraced(function* (row: DeveloperRow, { password }: Proof) {
    const proved = yield* passwords.verify(password ?? "", row.passwordHash)
    if (!proved) return yield* wrongPassword
  })
)

/** The row of a session's developer; the session may outlive it by a moment. */
const makeRowOf = Effect.map(DeveloperRepository, (rows) =>
  Effect.fnUntraced(function* ({ developerId }: DeveloperCaller) {
    const found = yield* rows.find(developerId)
    return Option.isSome(found) ? found.value : yield* new Unauthorized()
  })
)

const makeAccess = Effect.gen(function* () {
  const rows = yield* DeveloperRepository
  const passwords = yield* Passwords
  const sessions = yield* DeveloperSessions
  const transaction = yield* makeTransaction
  const prove = yield* makeProve
  const rowOf = yield* makeRowOf
  return {
    login: Effect.fn("DeveloperAccounts.login")(function* (email: string, password: string) {
      const found = Option.getOrUndefined(yield* rows.findByEmail(normalizeEmail(email)))
      const from = found?.passwordHash ?? null
      const right = yield* passwords.verify(password, from)
      if (!right || found === undefined || from === null) return yield* new InvalidCredentials()
      const { id: developerId } = found
      const to = passwords.isOutdated(from) ? yield* passwords.hash(password) : from
      // A password that is changed at this moment opens nothing.
      const { expiresAt, token } = yield* transaction(
        Effect.gen(function* () {
          const holds = yield* rows.replacePassword({ developerId, from, to })
          return holds ? yield* sessions.create(developerId) : yield* new InvalidCredentials()
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
      yield* prove(row, proof)
      const to = yield* passwords.hash(password)
      yield* transaction(
        Effect.gen(function* () {
          const holds = yield* rows.replacePassword({ developerId, from: row.passwordHash, to })
          if (!holds) return yield* wrongPassword
          yield* rows.endOtherSessions({ developerId, sessionId })
        })
      )
      return viewOf({ ...row, passwordHash: to })
    })
  }
})

const makeIdentities = Effect.gen(function* () {
  const rows = yield* DeveloperRepository
  const sql = yield* SqlClient.SqlClient
  const prove = yield* makeProve
  const rowOf = yield* makeRowOf
  const identities = ({ developerId }: DeveloperCaller) =>
    Effect.map(rows.identities(developerId), (found) =>
      found.map(({ linkedAt, ...identity }) => ({
        ...identity,
        linkedAt: DateTime.formatIso(linkedAt)
      }))
    )
  const remove = Effect.fnUntraced(function* (caller: DeveloperCaller, provider: string) {
    const { developerId } = caller
    yield* rows.hold(developerId)
    const { passwordHash } = yield* rowOf(caller)
    const linked = yield* rows.identities(developerId)
    if (!linked.some((identity) => identity.provider === provider)) return yield* new NotFound()
    if (linked.length === 1 && passwordHash === null) {
      return yield* new LastLoginMethod({ message: "This is your last way to sign in." })
    }
    yield* rows.unlink({ developerId, provider })
  })
  return {
    identities,
    unlink: Effect.fn("DeveloperAccounts.unlink")(function* (
      caller: DeveloperCaller,
      provider: string,
      proof: Proof
    ) {
      yield* prove(yield* rowOf(caller), proof)
      yield* Effect.catchTag(sql.withTransaction(remove(caller, provider)), "SqlError", Effect.die)
      return yield* identities(caller)
    })
  }
})
