/**
 * Format of refresh tokens: `rt_<session>.<256 random bits>.<MAC>`. The session id locates the row. The
 * MAC proves that this service issued the token. A token with a valid MAC that is neither current nor
 * the parent is a reused one. So the service detects reuse without storing old tokens.
 *
 * A rotation with an `Idempotency-Key` derives the next token from its parent and the key, under the
 * master key. So the rotation can be repeated, although the session keeps only the key's hash.
 */
import { createHmac } from "node:crypto"
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

/** A token to hand out, and its hash to store. */
interface NewToken {
  readonly token: string
  readonly hash: string
}

const bodyOf = (sessionId: SessionId, random: string) => `${sessionId.slice(4)}.${random}`

const newToken = (body: string, mac: string): NewToken => {
  const token = `rt_${body}.${mac}`
  return { token, hash: sha256(token) }
}

/** Generates a token of a session, with its hash. */
export const newRefreshToken = Effect.fnUntraced(function* (
  secrets: Secrets["Service"],
  sessionId: SessionId
) {
  const body = bodyOf(sessionId, yield* randomSecret)
  return newToken(body, secrets.mac(body))
})

/**
 * Derives the tokens that a rotation of a token with a key may have made: one for each master key,
 * newest first. A new rotation makes the first.
 */
export const makeSuccessors = (secrets: Secrets["Service"]) => {
  const deriving = secrets.deriveKeys("refresh token successors")
  return (sessionId: SessionId, parent: string, key: string): ReadonlyArray<NewToken> =>
    deriving.map((bytes, index) => {
      const random = createHmac("sha256", bytes).update(`${parent}\n${key}`).digest("base64url")
      const body = bodyOf(sessionId, random)
      return newToken(body, secrets.macs(body)[index] ?? "")
    })
}

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

/**
 * Whether this service issued a token. A MAC under an earlier master key proves nothing, but a stored
 * hash does.
 */
export const isIssued = (
  { hash, hasValidMac }: RefreshToken,
  storedHashes: ReadonlyArray<string | null>
): boolean => hasValidMac || storedHashes.includes(hash)
