/**
 * The tokens of the signed-in player (spec section 5, rules 2 and 4 to 6). Access tokens are renewed
 * before they end, one refresh at a time; what another tab has stored counts for this one too. A
 * session that the service has ended signs the player out.
 */
import { Clock, Effect, Option, Schedule, Schema, Semaphore } from "effect"
import type { RefreshRace } from "#rpc/errors"
import { sessions, socket } from "#rpc/limits"
import type { Player } from "#rpc/players"
import { Session } from "#rpc/sessions"
import { Emitter } from "./emitter.ts"
import { ServiceError, SignedOut } from "./errors.ts"
import { AccessToken, type Http, type Profile } from "./http.ts"
import type { StoredText } from "./storage.ts"
import { withWebLock } from "./web-lock.ts"

/** A session as it is stored; `expiresAt` is the end of the access token, Unix milliseconds. */
const StoredSession = Schema.fromJsonString(
  Schema.Struct({
    player: Session.fields.player,
    accessToken: Session.fields.accessToken,
    refreshToken: Session.fields.refreshToken,
    expiresAt: Schema.Int
  })
)
type StoredSession = typeof StoredSession.Type

/** An access token is renewed before the socket's warning, so that the warning finds a new one. */
const marginMillis = (socket.tokenWarningSeconds + 15) * 1000

/** How long the tokens of another tab are waited for: less than the window of the race. */
const raceWait = Schedule.spaced("250 millis").pipe(
  Schedule.upTo({ duration: `${sessions.refreshRaceSeconds - 2} seconds` })
)

/** Answers to a refresh after which its token will never work again. */
const endings: ReadonlySet<string> = new Set([
  "invalid_refresh_token",
  "session_revoked",
  "player_banned"
])

const signedOut = () => new SignedOut({ message: "Nobody is signed in: call sessions.guest()." })

export interface TokenOptions {
  readonly http: Http
  readonly stored: StoredText
  /** Names the Web Lock. */
  readonly name: string
  readonly autoGuest: boolean
}

export const makeTokens = ({ autoGuest, http, name, stored }: TokenOptions) => {
  const changes = new Emitter<{ readonly change: Player | null }>()
  const turn = Semaphore.makeUnsafe(1)
  let session: StoredSession | undefined
  let left = false

  const inTurn = <A, E>(effect: Effect.Effect<A, E>) => turn.withPermit(effect)

  const load = Effect.map(stored.read, (text) =>
    Option.getOrUndefined(Schema.decodeUnknownOption(StoredSession)(text))
  )

  const adopt = (next: StoredSession): StoredSession => {
    session = next
    left = false
    changes.emit("change", next.player)
    return next
  }

  const save = Effect.fnUntraced(function* ({ expiresIn, ...answer }: Session) {
    const now = yield* Clock.currentTimeMillis
    const next = { ...answer, expiresAt: now + expiresIn * 1000 }
    yield* stored.write(Schema.encodeSync(StoredSession)(next))
    return adopt(next)
  })

  const forget = Effect.fnUntraced(function* () {
    const was = session
    session = undefined
    left = true
    yield* stored.write(null)
    if (was !== undefined) changes.emit("change", null)
  })

  const create = Effect.fnUntraced(function* (profile: Profile) {
    return yield* save(yield* http.guest(profile))
  })

  /** Another tab came first: its tokens are in the storage, or soon will be. */
  const othersTokens = (used: StoredSession, race: RefreshRace) =>
    load.pipe(
      Effect.flatMap((found) =>
        found === undefined || found.refreshToken === used.refreshToken
          ? Effect.fail(race)
          : Effect.succeed(adopt(found))
      ),
      Effect.retry(raceWait)
    )

  const refresh = (used: StoredSession) =>
    http.refresh({ refreshToken: used.refreshToken }).pipe(
      Effect.flatMap(save),
      Effect.catchTag("refresh_race", (race) => othersTokens(used, race)),
      Effect.tapError((error) =>
        endings.has(error instanceof ServiceError ? error.code : error._tag)
          ? forget()
          : Effect.void
      )
    )

  const isFresh = (candidate: StoredSession) =>
    Effect.map(Clock.currentTimeMillis, (now) => candidate.expiresAt - now > marginMillis)

  /** Renews the session, unless another tab has just done so, or has signed the player out. */
  const renew = Effect.gen(function* () {
    const found = yield* load
    if (found === undefined) {
      yield* forget()
      return yield* signedOut()
    }
    if (found.accessToken !== session?.accessToken && (yield* isFresh(found))) return adopt(found)
    return yield* refresh(found)
  }).pipe(withWebLock(name))

  /** The stored session if there is one, with an access token that will do for a while. */
  const resume = Effect.gen(function* () {
    if (session === undefined) {
      const found = left ? undefined : yield* load
      if (found === undefined) return undefined
      adopt(found)
    }
    return session !== undefined && (yield* isFresh(session)) ? session : yield* renew
  })

  const ensure = (profile: Profile) =>
    Effect.flatMap(resume, (found) =>
      found === undefined ? create(profile) : Effect.succeed(found)
    )

  const access = Effect.gen(function* () {
    const found = yield* resume
    if (found !== undefined) return found.accessToken
    // After a sign-out a new guest would hide from the player that the old one is gone.
    if (!autoGuest || left) return yield* signedOut()
    return (yield* create({})).accessToken
  }).pipe(inTurn)

  /** The service refused this access token, whatever the clock says. */
  const expire = (accessToken: string): void => {
    if (session?.accessToken === accessToken) session = { ...session, expiresAt: 0 }
  }

  /** A request with the player's token; refreshes and repeats it once when that has expired. */
  const authorized = <A, E extends { readonly _tag: string }>(request: Effect.Effect<A, E>) =>
    Effect.flatMap(access, (token) =>
      request.pipe(
        Effect.provideService(AccessToken, token),
        Effect.catchIf(
          (error) => error._tag === "token_expired",
          () => {
            expire(token)
            return Effect.flatMap(access, (renewed) =>
              Effect.provideService(request, AccessToken, renewed)
            )
          }
        )
      )
    )

  /** Signs out here whatever happens, and at the service if it can be reached. */
  const logout = Effect.gen(function* () {
    const ended = session ?? (yield* load)
    yield* forget()
    if (ended === undefined) return
    yield* Effect.ignore(http.logout({ refreshToken: ended.refreshToken }))
  }).pipe(inTurn)

  /** The player was renamed; the tokens beside it are whatever was stored last. */
  const update = (player: Player) =>
    Effect.gen(function* () {
      const found = yield* load
      if (found?.player.id !== player.id) return
      yield* stored.write(Schema.encodeSync(StoredSession)(adopt({ ...found, player })))
    }).pipe(withWebLock(name), inTurn)

  return {
    /** The signed-in player, as far as is known without asking anybody. */
    player: () => session?.player ?? null,
    changes,
    create: (profile: Profile) => inTurn(create(profile)),
    resume: inTurn(resume),
    ensure: (profile: Profile) => inTurn(ensure(profile)),
    access,
    authorized,
    expire,
    logout,
    update
  }
}

export type Tokens = ReturnType<typeof makeTokens>
