/** Makes invite codes as the operator does. */
import { DateTime, Effect } from "effect"
import { newId } from "#rpc/ids"
import { InviteRepository } from "#sql/developers/invites"
import { sha256 } from "#server/platform/secrets"

/** Stores an invite code with a number of uses; returns its id. */
export const makeInvite = Effect.fnUntraced(function* (code: string, uses = 1) {
  const invites = yield* Effect.provide(InviteRepository, InviteRepository.layer)
  const id = yield* newId.invite
  const createdAt = yield* DateTime.now
  yield* invites.insert({ id, codeHash: sha256(code), uses, note: "", createdAt })
  return id
})
