/**
 * Invite codes. An account redeems one in its life, at sign-up or later, and gets credit for usage
 * fees. The credit is pending until the developer confirms the address.
 */
import { DateTime, Effect, Option } from "effect"
import {
  AlreadyRedeemed,
  InvalidInviteCode,
  InviteCodeUsed,
  InviteLimitReached
} from "#rpc/errors/codes"
import type { DeveloperId } from "#rpc/ids"
import { DeveloperRepository } from "#sql/developers/repository"
import { InviteRepository } from "#sql/developers/invites"
import { makeTransaction } from "#server/platform/database"
import { sha256 } from "#server/platform/secrets"
import { inviteCreditCents, Ledger } from "../money/ledger.ts"

/** Currency of the credit. */
const currency = "usd"

/** Checks and redeems invite codes. */
export const makeInvites = Effect.gen(function* () {
  const developers = yield* DeveloperRepository
  const invites = yield* InviteRepository
  const ledger = yield* Ledger
  const transaction = yield* makeTransaction

  /** Fails unless the code has a use left. */
  const check = Effect.fnUntraced(function* (code: string) {
    const found = Option.getOrUndefined(yield* invites.find(sha256(code)))
    if (found === undefined || found.revokedAt !== null) return yield* new InvalidInviteCode()
    if (found.used < found.uses) return
    return yield* found.uses === 1 ? new InviteCodeUsed() : new InviteLimitReached()
  })

  return {
    check,
    /** Redeems a code for an account and grants its credit, or changes nothing. */
    redeem: Effect.fn("Invites.redeem")(function* (developerId: DeveloperId, code: string) {
      yield* developers.lockAccount(developerId)
      const developer = Option.getOrUndefined(yield* developers.find(developerId))
      if (yield* invites.hasRedeemed(developerId)) return yield* new AlreadyRedeemed()
      const taken = Option.getOrUndefined(yield* invites.take(sha256(code)))
      if (taken === undefined) {
        yield* check(code)
        // Another account took the last use between both statements.
        return yield* new InviteLimitReached()
      }
      const redeemedAt = yield* DateTime.now
      yield* invites.redeem({ developerId, codeId: taken.id, redeemedAt })
      const pending = developer?.emailVerifiedAt === null
      yield* ledger.grantInvite({ developerId, pending })
      return { credited: Number(inviteCreditCents), currency, pending }
    }, transaction)
  }
})
