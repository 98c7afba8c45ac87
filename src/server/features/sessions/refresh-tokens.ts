/**
 * The form of refresh tokens: `rt_<session>.<256 random bits>.<mark>`. The random part makes a token
 * a secret, the session finds its row, and the mark proves that this service once issued it: so a
 * token that is neither current nor its parent is a used one, without a memory of all that were.
 */
import { Effect, Schema } from "effect"
import { SessionId } from "#rpc/ids"
import { randomSecret, type Secrets, sha256 } from "#server/platform/secrets"

const form = /^rt_([0-9A-Z]{26})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{22})$/

const isSessionId = Schema.is(SessionId)

/** A refresh token as its parts say. */
export interface RefreshToken {
  readonly sessionId: SessionId
  /** What is remembered of it. */
  readonly hash: string
  /** Whether this service issued it (under the present master key). */
  readonly isMarked: boolean
}

/** A new token of a session, and what is remembered of it. */
export const newRefreshToken = Effect.fnUntraced(function* (
  secrets: Secrets["Service"],
  sessionId: SessionId
) {
  const body = `${sessionId.slice(4)}.${yield* randomSecret}`
  const token = `rt_${body}.${secrets.mark(body)}`
  return { token, hash: sha256(token) }
})

/** The parts of a token; undefined when it has not the form of one. */
export const parseRefreshToken = (
  secrets: Secrets["Service"],
  token: string
): RefreshToken | undefined => {
  const [, session = "", random = "", mark = ""] = form.exec(token) ?? []
  const sessionId = `ses_${session}`
  if (!isSessionId(sessionId)) return undefined
  return { sessionId, hash: sha256(token), isMarked: secrets.isMark(`${session}.${random}`, mark) }
}
