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

const isFresh = ({ expiresAt }: StoredSession) =>
  Effect.map(Clock.currentTimeMillis, (now) => expiresAt - now > marginMillis)

const signedOut = () => new SignedOut({ message: "Nobody is signed in: call sessions.guest()." })

export interface TokenOptions {
  readonly http: Http
  readonly stored: StoredText
  /** Names the Web Lock. */
  readonly name: string
  readonly autoGuest: boolean
}

export class Tokens {
  readonly changes = new Emitter<{ readonly change: Player | null }>()
  readonly #options: TokenOptions
  readonly #turn = Semaphore.makeUnsafe(1)
  #session: StoredSession | undefined
  /** The token that a ban has revoked: it proves who appeals. */
  #banned: string | undefined
  /** The player was signed out, so the next one is not created without being asked for. */
  #left = false

  constructor(options: TokenOptions) {
    this.#options = options
  }

  /** The signed-in player, as far as is known without asking anybody. */
  get player(): Player | null {
    return this.#session?.player ?? null
  }

  /** Signs in as a new guest. */
  create(profile: Profile) {
    return this.#inTurn(this.#create(profile))
  }

  /** The stored session if there is one that has not ended. */
  resume() {
    return this.#inTurn(this.#living())
  }

  /** The stored session, or a new guest. */
  ensure(profile: Profile) {
    const found = Effect.flatMap(this.#living(), (session) =>
      session === undefined ? this.#create(profile) : Effect.succeed(session)
    )
    return this.#inTurn(found)
  }

  /** An access token that will do for a while. */
  access() {
    const found = Effect.gen({ self: this }, function* () {
      const session = yield* this.#resume()
      if (session !== undefined) return session.accessToken
      // After a sign-out a new guest would hide from the player that the old one is gone.
      if (!this.#options.autoGuest || this.#left) return yield* signedOut()
      return (yield* this.#create({})).accessToken
    })
    return this.#inTurn(found)
  }

  /** The service refused this access token, whatever the clock says. */
  expire(accessToken: string): void {
    if (this.#session?.accessToken !== accessToken) return
    this.#session = { ...this.#session, expiresAt: 0 }
  }

  /** A request with the player's token; refreshes and repeats it once when that has expired. */
  authorized<A, E extends { readonly _tag: string }>(request: Effect.Effect<A, E>) {
    const attempt = (token: string) => Effect.provideService(request, AccessToken, token)
    return Effect.flatMap(this.access(), (token) =>
      Effect.catchIf(
        attempt(token),
        (error) => error._tag === "token_expired",
        () => {
          this.expire(token)
          return Effect.flatMap(this.access(), attempt)
        }
      )
    )
  }

  /** Signs out here whatever happens, and at the service if it can be reached. */
  logout() {
    const { http } = this.#options
    const ended = Effect.gen({ self: this }, function* () {
      const session = this.#session ?? (yield* this.#load())
      yield* this.#forget()
      if (session === undefined) return
      yield* Effect.ignore(http.logout({ refreshToken: session.refreshToken }))
    })
    return this.#inTurn(ended)
  }

  /** Appeals against the ban that has signed the player out, or is about to. */
  appeal(message: string) {
    const { http } = this.#options
    const appealed = Effect.gen({ self: this }, function* () {
      const session = this.#session ?? (this.#left ? undefined : yield* this.#load())
      const refreshToken = session?.refreshToken ?? this.#banned
      if (refreshToken === undefined) return yield* signedOut()
      return yield* http.appeal({ refreshToken, message })
    })
    return this.#inTurn(appealed)
  }

  /** The player was renamed; the tokens beside it are whatever was stored last. */
  update(player: Player) {
    const { name, stored } = this.#options
    const updated = Effect.gen({ self: this }, function* () {
      const found = yield* this.#load()
      if (found?.player.id !== player.id) return
      yield* stored.write(Schema.encodeSync(StoredSession)(this.#adopt({ ...found, player })))
    })
    return this.#inTurn(withWebLock(name)(updated))
  }

  #inTurn<A, E>(effect: Effect.Effect<A, E>) {
    return this.#turn.withPermit(effect)
  }

  #load() {
    return Effect.map(this.#options.stored.read, (text) =>
      Option.getOrUndefined(Schema.decodeUnknownOption(StoredSession)(text))
    )
  }

  #adopt(session: StoredSession): StoredSession {
    this.#session = session
    this.#left = false
    this.changes.emit("change", session.player)
    return session
  }

  #save({ expiresIn, ...answer }: Session) {
    return Effect.gen({ self: this }, function* () {
      const now = yield* Clock.currentTimeMillis
      const session = { ...answer, expiresAt: now + expiresIn * 1000 }
      yield* this.#options.stored.write(Schema.encodeSync(StoredSession)(session))
      return this.#adopt(session)
    })
  }

  #forget() {
    return Effect.gen({ self: this }, function* () {
      const was = this.#session
      this.#session = undefined
      this.#left = true
      yield* this.#options.stored.write(null)
      if (was !== undefined) this.changes.emit("change", null)
    })
  }

  #create(profile: Profile) {
    return Effect.flatMap(this.#options.http.guest(profile), (session) => this.#save(session))
  }

  /** A session that has ended is as good as none; a ban is for the player to see. */
  #living() {
    return Effect.catchTag(
      this.#resume(),
      ["signed_out", "session_revoked", "invalid_refresh_token"],
      () => Effect.undefined
    )
  }

  /** The stored session if there is one, with an access token that will do for a while. */
  #resume() {
    return Effect.gen({ self: this }, function* () {
      if (this.#session === undefined) {
        const found = this.#left ? undefined : yield* this.#load()
        if (found === undefined) return undefined
        this.#adopt(found)
      }
      const session = this.#session
      return session !== undefined && (yield* isFresh(session)) ? session : yield* this.#renew()
    })
  }

  /** Renews the session, unless another tab has just done so, or has signed the player out. */
  #renew() {
    const renewed = Effect.gen({ self: this }, function* () {
      const found = yield* this.#load()
      if (found === undefined) {
        yield* this.#forget()
        return yield* signedOut()
      }
      const others = found.accessToken !== this.#session?.accessToken
      return others && (yield* isFresh(found)) ? this.#adopt(found) : yield* this.#refresh(found)
    })
    return withWebLock(this.#options.name)(renewed)
  }

  #refresh(used: StoredSession) {
    return this.#options.http.refresh({ refreshToken: used.refreshToken }).pipe(
      Effect.flatMap((session) => this.#save(session)),
      Effect.catchTag("refresh_race", (race) => this.#othersTokens(used, race)),
      Effect.tapError((error) => {
        const code = error instanceof ServiceError ? error.code : error._tag
        if (code === "player_banned") this.#banned = used.refreshToken
        return endings.has(code) ? this.#forget() : Effect.void
      })
    )
  }

  /** Another tab came first: its tokens are in the storage, or soon will be. */
  #othersTokens(used: StoredSession, race: RefreshRace) {
    return this.#load().pipe(
      Effect.flatMap((found) =>
        found === undefined || found.refreshToken === used.refreshToken
          ? Effect.fail(race)
          : Effect.succeed(this.#adopt(found))
      ),
      Effect.retry(raceWait)
    )
  }
}
