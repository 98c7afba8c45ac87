/**
 * New developer accounts. With `SVC_SIGNUPS=closed` the first sign-up of a deployment still succeeds;
 * later ones are closed. In production the first sign-up needs the setup token instead of what
 * `SVC_SIGNUPS` asks for.
 */
import { Effect, Option, Redacted } from "effect"
import { EmailTaken, InvalidInviteCode, InviteCodeUsed, SignupsClosed } from "#rpc/errors/codes"
import { type DeveloperRow, DeveloperRepository } from "#sql/developers"
import { makeTransaction } from "#server/platform/database"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { makeSetupToken } from "./setup-token.ts"

/** What lets a new account in where sign-up is not open. */
export interface Invitation {
  readonly inviteCode?: string | undefined
  readonly setupToken?: string | undefined
}

/** Reads the sign-up policy: `closed` is `open` until the first account exists. */
export const makeSignups = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const { signups } = yield* Settings
  if (signups !== "closed") return Effect.succeed(signups)
  return Effect.map(repository.isEmpty, (isFirst) =>
    isFirst ? ("open" as const) : ("closed" as const)
  )
})

/** Creates accounts, if the sign-up policy or an invitation lets them in. */
export const makeCreateAccount = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const { inviteCodes } = yield* Settings
  const transaction = yield* makeTransaction
  const setupToken = yield* makeSetupToken
  const signups = yield* makeSignups
  const codes = new Set(inviteCodes.map((code) => sha256(Redacted.value(code))))

  /** Returns the hash of a valid invite code; none when no code is given and none is needed. */
  const admit = Effect.fnUntraced(function* ({ inviteCode, setupToken: token }: Invitation) {
    if (yield* setupToken.isNeeded) {
      yield* setupToken.check(token)
      return undefined
    }
    const policy = yield* signups
    if (policy === "closed") return yield* new SignupsClosed()
    if (inviteCode === undefined && policy === "open") return undefined
    const codeHash = sha256(inviteCode ?? "")
    return codes.has(codeHash) ? codeHash : yield* new InvalidInviteCode()
  })

  const store = Effect.fnUntraced(function* (row: DeveloperRow, invitation: Invitation) {
    yield* repository.lockAccounts
    const codeHash = yield* admit(invitation)
    if (Option.isSome(yield* repository.findByEmail(row.email))) return yield* new EmailTaken()
    yield* repository.insert(row)
    yield* repository.deleteSetupToken
    if (codeHash === undefined) return
    const use = { codeHash, developerId: row.id, usedAt: row.createdAt }
    if (!(yield* repository.useInvite(use))) return yield* new InviteCodeUsed()
  })

  return {
    /** Fails if no account may be created. */
    admit,
    /** Stores an account, and what belongs to it, in one transaction. */
    create: <E = never>(
      row: DeveloperRow,
      invitation: Invitation,
      more: Effect.Effect<void, E> = Effect.void
    ) => transaction(Effect.andThen(store(row, invitation), more))
  }
})
