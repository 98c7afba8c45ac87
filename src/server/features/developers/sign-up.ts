/**
 * New developer accounts. With `SVC_SIGNUPS=closed`, or where the operator has closed sign-up, the first
 * sign-up of a deployment still succeeds, and later ones fail. In production the first sign-up needs the
 * setup token instead of what `SVC_SIGNUPS` requires.
 */
import { Effect, Option } from "effect"
import { EmailTaken, InvalidInviteCode, SignupsClosed } from "#rpc/errors/codes"
import type { DeveloperId } from "#rpc/ids"
import { ClosedSignups } from "#sql/developers/closed-signups"
import { DeveloperRepository, type NewDeveloper } from "#sql/developers/repository"
import { makeTransaction } from "#server/platform/database"
import { emailForms } from "#server/platform/email-forms"
import { Settings } from "#server/platform/settings/settings"
import { makeInvites } from "./invites.ts"
import { makeSetupToken } from "./setup-token.ts"

/** Tokens and codes that admit a new account where sign-up is not open. */
export interface Invitation {
  readonly inviteCode?: string | undefined
  readonly setupToken?: string | undefined
}

const inviteNeeded = new InvalidInviteCode({
  message: "Sign-up needs an invite code. Send one as inviteCode, or ask the operator for one."
})

/** Reads the sign-up policy: `closed` is `open` until the first account exists. */
export const makeSignups = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const { isClosed } = yield* ClosedSignups
  const { signups } = yield* Settings
  return Effect.gen(function* () {
    if (signups !== "closed" && !(yield* isClosed)) return signups
    return (yield* repository.isEmpty) ? ("open" as const) : ("closed" as const)
  })
})

/** Creates accounts if the sign-up policy or an invitation admits them. */
export const makeCreateAccount = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const invites = yield* makeInvites
  const transaction = yield* makeTransaction
  const setupToken = yield* makeSetupToken
  const signups = yield* makeSignups

  /**
   * Fails if neither the setup token nor the policy admits an account, or if a given invite code is
   * not redeemable.
   */
  const admit = Effect.fnUntraced(function* ({ inviteCode, setupToken: token }: Invitation) {
    if (yield* setupToken.isNeeded) {
      yield* setupToken.check(token)
    } else {
      const policy = yield* signups
      if (policy === "closed") return yield* new SignupsClosed()
      if (policy === "invite" && inviteCode === undefined) return yield* inviteNeeded
    }
    if (inviteCode !== undefined) yield* invites.check(inviteCode)
  })

  const store = Effect.fnUntraced(function* <E>(
    row: NewDeveloper,
    { inviteCode, ...invitation }: Invitation,
    more: Effect.Effect<void, E>
  ) {
    yield* repository.lockAccounts
    yield* admit({ ...invitation, inviteCode })
    if (Option.isSome(yield* repository.findByEmail(emailForms(row.email))))
      return yield* new EmailTaken()
    yield* repository.insert(row)
    yield* repository.deleteSetupToken
    yield* more
    const invite = inviteCode === undefined ? {} : { invite: yield* redeem(row.id, inviteCode) }
    const stored = yield* Effect.orDie(Effect.fromOption(yield* repository.find(row.id)))
    return { row: stored, ...invite }
  })

  /** Redeems a code for a new account, which has redeemed none before. */
  const redeem = (id: DeveloperId, code: string) =>
    Effect.catchTag(invites.redeem(id, code), "already_redeemed", Effect.die)

  return {
    admit,
    /** Stores an account and its related rows in one transaction, and redeems its invite code. */
    create: <E = never>(
      row: NewDeveloper,
      invitation: Invitation,
      more: Effect.Effect<void, E> = Effect.void
    ) => transaction(store(row, invitation, more))
  }
})
