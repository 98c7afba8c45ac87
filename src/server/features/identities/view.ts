/** The public form of an identity row. */
import { DateTime } from "effect"
import type { LinkedIdentity } from "#rpc/identities"
import type { IdentityRow } from "#sql/identities"

/** Returns the player's view of an identity. */
export const identityView = (row: IdentityRow): LinkedIdentity => ({
  provider: row.provider,
  ...(row.email === null ? {} : { email: row.email, emailVerified: row.emailVerified }),
  ...(row.username === null ? {} : { username: row.username }),
  linkedAt: DateTime.formatIso(row.linkedAt)
})
