/**
 * The tokens of the signed-in player (spec section 5, rules 2 and 4 to 6). Access tokens are renewed
 * before they end, one refresh at a time. Tabs share one stored session: who writes it holds the Web
 * Lock, who refreshes reads it again first, and whoever hears of a change follows. A session that the
 * service has ended signs the player out.
 */
import { Effect, Equal, Schedule, Semaphore } from "effect"
import type { RefreshRace } from "#rpc/errors/codes"
import { sessions } from "#rpc/limits"
import type { Player } from "#rpc/players"
import type { Session } from "#rpc/sessions"
import { Emitter } from "./emitter.ts"
import { ServiceError, SignedOut } from "./errors.ts"
import { AccessToken, type Http, type Profile } from "./http.ts"
import type { StoredText } from "./storage.ts"
import { isFresh, load, store, type StoredSession, fromResponse } from "./stored-session.ts"
import { withWebLock } from "./web-lock.ts"

/** How long the tokens of another tab are waited for: less than the window of the race. */
const raceRetry = Schedule.spaced("250 millis").pipe(
  Schedule.upTo({ duration: `${sessions.refreshRaceSeconds - 2} seconds` })
)

/** Answers to a refresh after which its token will never work again. */
const finalErrors: ReadonlySet<string> = new Set([
  "invalid_refresh_token",
  "session_revoked",
  "player_banned"
])

const signedOut = () => new SignedOut({ message: "Nobody is signed in." })

export interface TokenOptions {
  readonly http: Http
  readonly stored: StoredText
  /** Names the Web Lock. */
  readonly name: string
  readonly autoGuest: boolean
  readonly run: (effect: Effect.Effect<void>) => void
}

/** What proves that a request comes from this device's session. */
export interface RefreshTokenBody {
  readonly refreshToken: string
}

export class Tokens {
  readonly changes = new Emitter<{ readonly change: Player | null }>()
  readonly #options: TokenOptions
  readonly #mutex = Semaphore.makeUnsafe(1)
  #session: StoredSession | undefined
  /** The token that a ban has revoked: it proves who appeals. */
  #bannedRefreshToken: string | undefined
  /** The player was signed out, so the next one is not created without being asked for. */
  #isSignedOut = false

  constructor(options: TokenOptions) {
    this.#options = options
    options.stored.watch(() => options.run(this.#syncFromStorage()))
  }

  /** The signed-in player, as far as is known without asking anybody. */
  get player(): Player | null {
    return this.#session?.player ?? null
  }

  /** Signs in as the player that a request answers, whoever was signed in before. */
  signIn<A extends Session, E>(request: Effect.Effect<A, E>) {
    return this.#exclusive(Effect.tap(request, (session) => this.#locked(this.#save(session))))
  }

  /** The stored session if there is one that has not ended. */
  resume() {
    return this.#exclusive(this.#resumeIfValid())
  }

  /** The stored session, or a new guest. */
  ensure(profile: Profile) {
    const found = Effect.flatMap(this.#resumeIfValid(), (session) =>
      session === undefined ? this.#newGuest(profile) : Effect.succeed(session)
    )
    return this.#exclusive(found)
  }

  /** An access token that will do for a while. */
  access() {
    return this.#exclusive(Effect.map(this.#resumeOrCreate(), ({ accessToken }) => accessToken))
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

  /** The same for what the refresh token is to prove: nobody rotates it meanwhile. */
  withRefreshToken<A, E extends { readonly _tag: string }>(
    request: (proof: RefreshTokenBody) => Effect.Effect<A, E>
  ) {
    const attempt = Effect.gen({ self: this }, function* () {
      const session = (yield* this.#load()) ?? this.#session
      if (session === undefined) return yield* signedOut()
      return yield* request({ refreshToken: session.refreshToken })
    })
    return this.authorized(this.#exclusive(this.#locked(attempt)))
  }

  /** Signs out here whatever happens, and at the service if it can be reached. */
  logout() {
    const { http } = this.#options
    const ended = Effect.gen({ self: this }, function* () {
      const session = yield* this.#locked(this.#signOutAllTabs())
      if (session === undefined) return
      yield* Effect.ignore(http.logout({ refreshToken: session.refreshToken }))
    })
    return this.#exclusive(ended)
  }

  /** There is no such player any more. */
  discard() {
    return this.#exclusive(this.#locked(this.#signOutAllTabs()))
  }

  /** Appeals against the ban that has signed the player out, or is about to. */
  appeal(message: string) {
    const { http } = this.#options
    const appealed = Effect.gen({ self: this }, function* () {
      const session = this.#session ?? (this.#isSignedOut ? undefined : yield* this.#load())
      const refreshToken = session?.refreshToken ?? this.#bannedRefreshToken
      if (refreshToken === undefined) return yield* signedOut()
      return yield* http.appeal({ refreshToken, message })
    })
    return this.#exclusive(appealed)
  }

  /** The player was renamed; the tokens beside it are whatever was stored last. */
  update(player: Player) {
    const updated = Effect.gen({ self: this }, function* () {
      const found = yield* this.#load()
      if (found?.player.id !== player.id) return
      yield* store(this.#options.stored, this.#adopt({ ...found, player }))
    })
    return this.#exclusive(this.#locked(updated))
  }

  #exclusive<A, E>(effect: Effect.Effect<A, E>) {
    return this.#mutex.withPermit(effect)
  }

  #locked<A, E>(effect: Effect.Effect<A, E>) {
    return withWebLock(this.#options.name)(effect)
  }

  /** The storage may have changed: another tab's player, tokens and sign-out are this one's too. */
  #syncFromStorage() {
    const followed = Effect.gen({ self: this }, function* () {
      const found = yield* this.#load()
      const known = this.#session
      if (found === undefined) return known === undefined ? undefined : this.#clear()
      const same = found.accessToken === known?.accessToken
      if (!same || !Equal.equals(found.player, known.player)) this.#adopt(found)
    })
    return this.#exclusive(followed)
  }

  #load() {
    return load(this.#options.stored)
  }

  #adopt(session: StoredSession): StoredSession {
    this.#session = session
    this.#isSignedOut = false
    this.changes.emit("change", session.player)
    return session
  }

  #save(answer: Session) {
    return Effect.gen({ self: this }, function* () {
      const session = yield* fromResponse(answer)
      yield* store(this.#options.stored, session)
      return this.#adopt(session)
    })
  }

  /** Nobody is signed in any more. */
  #clear(): void {
    const was = this.#session
    this.#session = undefined
    this.#isSignedOut = true
    if (was !== undefined) this.changes.emit("change", null)
  }

  /** Under the lock: signs out all tabs; answers the session that was theirs. */
  #signOutAllTabs() {
    return Effect.gen({ self: this }, function* () {
      const session = (yield* this.#load()) ?? this.#session
      yield* this.#options.stored.write(null)
      this.#clear()
      return session
    })
  }

  /** A new guest, unless another tab came first. */
  #newGuest(profile: Profile) {
    const created = Effect.flatMap(this.#options.http.guest(profile), (session) =>
      this.#save(session)
    )
    return this.#locked(
      Effect.flatMap(this.#loadFresh(), (found) =>
        found === undefined ? created : Effect.succeed(found)
      )
    )
  }

  /** The stored session; if need be and wanted, that of a new guest. */
  #resumeOrCreate() {
    return Effect.gen({ self: this }, function* () {
      const session = yield* this.#resume()
      if (session !== undefined) return session
      // After a sign-out a new guest would hide from the player that the old one is gone.
      if (!this.#options.autoGuest || this.#isSignedOut) return yield* signedOut()
      return yield* this.#newGuest({})
    })
  }

  /** A session that has ended is as good as none; a ban is for the player to see. */
  #resumeIfValid() {
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
        const found = this.#isSignedOut ? undefined : yield* this.#load()
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
      const session = yield* this.#loadFresh()
      if (session !== undefined) return session
      this.#clear()
      return yield* signedOut()
    })
    return this.#locked(renewed)
  }

  /** Under the lock: what the tabs share now, refreshed if that is due. */
  #loadFresh() {
    return Effect.gen({ self: this }, function* () {
      const found = yield* this.#load()
      if (found === undefined) return undefined
      const others = found.accessToken !== this.#session?.accessToken
      return others && (yield* isFresh(found)) ? this.#adopt(found) : yield* this.#refresh(found)
    })
  }

  #refresh(used: StoredSession) {
    return this.#options.http.refresh({ refreshToken: used.refreshToken }).pipe(
      Effect.flatMap((session) => this.#save(session)),
      Effect.catchTag("refresh_race", (race) => this.#awaitOtherTab(used, race)),
      Effect.tapError((error) => {
        const code = error instanceof ServiceError ? error.code : error._tag
        if (code === "player_banned") this.#bannedRefreshToken = used.refreshToken
        return finalErrors.has(code) ? this.#signOutAllTabs() : Effect.void
      })
    )
  }

  /** Another tab came first: its tokens are in the storage, or soon will be. */
  #awaitOtherTab(used: StoredSession, race: RefreshRace) {
    return this.#load().pipe(
      Effect.flatMap((found) =>
        found === undefined || found.refreshToken === used.refreshToken
          ? Effect.fail(race)
          : Effect.succeed(this.#adopt(found))
      ),
      Effect.retry(raceRetry)
    )
  }
}
