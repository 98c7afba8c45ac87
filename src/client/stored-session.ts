/** The session that tabs share: one storage entry, decoded on every read. */
import { Clock, Effect, Option, Schema } from "effect"
import { socket } from "#rpc/limits"
import { Session } from "#rpc/sessions"
import type { StoredText } from "./storage.ts"

/** `expiresAt`: expiry of the access token, in Unix milliseconds. */
const StoredSession = Schema.fromJsonString(
  Schema.Struct({
    player: Session.fields.player,
    accessToken: Session.fields.accessToken,
    refreshToken: Session.fields.refreshToken,
    expiresAt: Schema.Int
  })
)
export type StoredSession = typeof StoredSession.Type

/**
 * Access tokens are renewed this long before they expire: earlier than the socket's warning, which then
 * finds a new token.
 */
const renewalMarginMillis = (socket.tokenWarningSeconds + 15) * 1000

/** Whether the access token is valid for longer than the renewal margin. */
export const isFresh = ({ expiresAt }: StoredSession) =>
  Effect.map(Clock.currentTimeMillis, (now) => expiresAt - now > renewalMarginMillis)

/** Converts the service's response to the stored form. */
export const fromResponse = ({ accessToken, expiresIn, player, refreshToken }: Session) =>
  Effect.map(Clock.currentTimeMillis, (now): StoredSession => {
    return { player, accessToken, refreshToken, expiresAt: now + expiresIn * 1000 }
  })

/** Reads the stored session; undefined if there is none or it is malformed. */
export const load = (stored: StoredText): Effect.Effect<StoredSession | undefined> =>
  Effect.map(stored.read, (text) =>
    Option.getOrUndefined(Schema.decodeUnknownOption(StoredSession)(text))
  )

export const store = (stored: StoredText, session: StoredSession): Effect.Effect<void> =>
  stored.write(Schema.encodeSync(StoredSession)(session))
