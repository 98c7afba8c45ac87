/**
 * Format of refresh tokens: `rt_<session>.<256 random bits>.<MAC>`. The session id locates the row. The
 * MAC proves that this service issued the token. A token with a valid MAC that is neither current nor
 * the parent is a reused one. So the service detects reuse without storing old tokens.
 */
import { Effect, Schema } from "effect"
import { SessionId } from "#rpc/ids"
import { randomSecret, type Secrets, sha256 } from "#server/platform/secrets"

const pattern = /^rt_([0-9A-Z]{26})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{22})$/

const isSessionId = Schema.is(SessionId)

/** A parsed refresh token. */
export interface RefreshToken {
  readonly sessionId: SessionId
  /** SHA-256 of the token, as stored. */
  readonly hash: string
  /** Whether the MAC is valid under the current master key. */
  readonly hasValidMac: boolean
}

/** Generates a token of a session, with its hash. */
export const newRefreshToken = Effect.fnUntraced(function* (
  secrets: Secrets["Service"],
  sessionId: SessionId
) {
  const body = `${sessionId.slice(4)}.${yield* randomSecret}`
  const token = `rt_${body}.${secrets.mac(body)}`
  return { token, hash: sha256(token) }
})

/** Parses a token; undefined if it does not match the format. */
export const parseRefreshToken = (
  secrets: Secrets["Service"],
  token: string
): RefreshToken | undefined => {
  const [, session = "", random = "", mac = ""] = pattern.exec(token) ?? []
  const sessionId = `ses_${session}`
  if (!isSessionId(sessionId)) return undefined
  return {
    sessionId,
    hash: sha256(token),
    hasValidMac: secrets.hasValidMac(`${session}.${random}`, mac)
  }
}
