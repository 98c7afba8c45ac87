/** The developer's own view of an account. */
import { DateTime } from "effect"
import type { Developer } from "#rpc/developers"
import type { DeveloperRow } from "#sql/developers/repository"

/** Converts a row to the developer's view of the account. */
export const viewOf = ({
  createdAt,
  email,
  emailVerifiedAt,
  id,
  name,
  passwordHash
}: DeveloperRow): Developer => ({
  id,
  email,
  name,
  emailVerified: emailVerifiedAt !== null,
  hasPassword: passwordHash !== null,
  createdAt: DateTime.formatIso(createdAt)
})
