/** The session as tabs share it: one text of the storage, decoded on every look. */
import { Clock, Effect, Option, Schema } from "effect"
import { socket } from "#rpc/limits"
import { Session } from "#rpc/sessions"
import type { StoredText } from "./storage.ts"

/** `expiresAt` is the end of the access token, Unix milliseconds. */
const StoredSession = Schema.fromJsonString(
  Schema.Struct({
    player: Session.fields.player,
    accessToken: Session.fields.accessToken,
    refreshToken: Session.fields.refreshToken,
    expiresAt: Schema.Int
  })
)
export type StoredSession = typeof StoredSession.Type

/** An access token is renewed before the socket's warning, so that the warning finds a new one. */
const renewalMarginMillis = (socket.tokenWarningSeconds + 15) * 1000

/** Will its access token do for a while? */
export const isFresh = ({ expiresAt }: StoredSession) =>
  Effect.map(Clock.currentTimeMillis, (now) => expiresAt - now > renewalMarginMillis)

/** A session as the service answers it, to be stored. */
export const fromResponse = ({ accessToken, expiresIn, player, refreshToken }: Session) =>
  Effect.map(Clock.currentTimeMillis, (now): StoredSession => {
    return { player, accessToken, refreshToken, expiresAt: now + expiresIn * 1000 }
  })

/** What is stored; undefined when that is nothing, or something else. */
export const load = (stored: StoredText): Effect.Effect<StoredSession | undefined> =>
  Effect.map(stored.read, (text) =>
    Option.getOrUndefined(Schema.decodeUnknownOption(StoredSession)(text))
  )

export const store = (stored: StoredText, session: StoredSession): Effect.Effect<void> =>
  stored.write(Schema.encodeSync(StoredSession)(session))
