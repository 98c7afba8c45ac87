/**
 * Tokens of the signed-in player. Access tokens are renewed before they expire, one refresh at a time.
 * Tabs share one stored session: a writer holds the Web Lock, a refresh rereads the session first, and
 * other tabs follow each change. When the service ends the session, the player is signed out.
 */
import { Effect, Equal, Schedule, Semaphore } from "effect"
import type { RefreshRace } from "#rpc/errors/codes"
import { sessions } from "#rpc/limits"
import type { Player } from "#rpc/players"
import type { Session } from "#rpc/sessions"
import { Emitter } from "./emitter.ts"
import { SignedOut } from "./errors.ts"
import { AccessToken, type Http, type Profile } from "./http.ts"
import type { StoredText } from "./storage.ts"
import { isFresh, load, store, type StoredSession, fromResponse } from "./stored-session.ts"
import { withWebLock } from "./web-lock.ts"

/** How long to wait for the tokens of another tab: less than the service's race window. */
const raceRetry = Schedule.spaced("250 millis").pipe(
  Schedule.upTo({ duration: `${sessions.refreshRaceSeconds - 2} seconds` })
)

/** Errors of a refresh after which its token never works again. */
const finalErrors: ReadonlySet<string> = new Set([
  "invalid_refresh_token",
  "session_revoked",
  "player_banned"
])

const signedOut = () =>
  new SignedOut({ message: "No player is signed in: call sessions.ensure() or another sign-in." })

export interface TokenOptions {
  readonly http: Http
  readonly stored: StoredText
  /** Name of the Web Lock. */
  readonly name: string
  readonly autoGuest: boolean
  readonly run: (effect: Effect.Effect<void>) => void
}

/** The request field that proves possession of this device's session. */
export interface RefreshTokenBody {
  readonly refreshToken: string
}

export class Tokens {
  readonly changes = new Emitter<{ readonly change: Player | null }>()
  readonly #options: TokenOptions
  readonly #mutex = Semaphore.makeUnsafe(1)
  #session: StoredSession | undefined
  /** The refresh token that a ban has revoked: it still authenticates an appeal. */
  #bannedRefreshToken: string | undefined
  /** The player was signed out: guests are not created implicitly. */
  #isSignedOut = false

  constructor(options: TokenOptions) {
    this.#options = options
    options.stored.watch(() => options.run(this.#syncFromStorage()))
  }

  /** The signed-in player, from memory. */
  get player(): Player | null {
    return this.#session?.player ?? null
  }

  /** Signs in with the session that a request returns, replacing the current one. */
  signIn<A extends Session, E>(request: Effect.Effect<A, E>) {
    return this.#exclusive(Effect.tap(request, (session) => this.#locked(this.#save(session))))
  }

  /** Returns the stored session if it is still valid. */
  resume() {
    return this.#exclusive(this.#resumeIfValid())
  }

  /** Returns the stored session, or that of a new guest. */
  ensure(profile: Profile) {
    const found = Effect.flatMap(this.#resumeIfValid(), (session) =>
      session === undefined ? this.#newGuest(profile) : Effect.succeed(session)
    )
    return this.#exclusive(found)
  }

  /** Returns a fresh access token. */
  access() {
    return this.#exclusive(Effect.map(this.#resumeOrCreate(), ({ accessToken }) => accessToken))
  }

  /** Marks an access token that the service refused as expired. */
  expire(accessToken: string): void {
    if (this.#session?.accessToken !== accessToken) return
    this.#session = { ...this.#session, expiresAt: 0 }
  }

  /** Runs a request with the access token. If the token has expired, refreshes it and retries once. */
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

  /** The same for a request with the refresh token, which no tab rotates meanwhile. */
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

  /** Signs out on this device, and at the service if it is reachable. */
  logout() {
    const { http } = this.#options
    const ended = Effect.gen({ self: this }, function* () {
      const session = yield* this.#locked(this.#signOutAllTabs())
      if (session === undefined) return
      yield* Effect.ignore(http.logout({ refreshToken: session.refreshToken }))
    })
    return this.#exclusive(ended)
  }

  /** Removes the session of a deleted player. */
  discard() {
    return this.#exclusive(this.#locked(this.#signOutAllTabs()))
  }

  /** Appeals against the player's ban, before or after the ban has ended the session. */
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

  /** Stores a changed player beside the latest tokens. */
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

  /** Adopts the player, tokens or sign-out that another tab stored. */
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

  /** Clears the session in memory. */
  #clear(): void {
    const was = this.#session
    this.#session = undefined
    this.#isSignedOut = true
    if (was !== undefined) this.changes.emit("change", null)
  }

  /** Signs out all tabs and returns their session. Call it under the lock. */
  #signOutAllTabs() {
    return Effect.gen({ self: this }, function* () {
      const session = (yield* this.#load()) ?? this.#session
      yield* this.#options.stored.write(null)
      this.#clear()
      return session
    })
  }

  /** Creates a guest, unless another tab was faster. */
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

  /** Returns the stored session, or that of a new guest if `autoGuest` allows it. */
  #resumeOrCreate() {
    return Effect.gen({ self: this }, function* () {
      const session = yield* this.#resume()
      if (session !== undefined) return session
      // After a sign-out, a new guest would hide that the old player is signed out.
      if (!this.#options.autoGuest || this.#isSignedOut) return yield* signedOut()
      return yield* this.#newGuest({})
    })
  }

  /** Maps an ended session to undefined. A ban stays an error, because the player must see it. */
  #resumeIfValid() {
    return Effect.catchTag(
      this.#resume(),
      ["signed_out", "session_revoked", "invalid_refresh_token"],
      () => Effect.undefined
    )
  }

  /** Returns the stored session with a fresh access token, or undefined. */
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

  /** Renews the session, unless another tab has just renewed it or signed out. */
  #renew() {
    const renewed = Effect.gen({ self: this }, function* () {
      const session = yield* this.#loadFresh()
      if (session !== undefined) return session
      this.#clear()
      return yield* signedOut()
    })
    return this.#locked(renewed)
  }

  /** Loads the shared session and refreshes it if due. Call it under the lock. */
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
      Effect.tapError(({ code }) => {
        if (code === "player_banned") this.#bannedRefreshToken = used.refreshToken
        return finalErrors.has(code) ? this.#signOutAllTabs() : Effect.void
      })
    )
  }

  /** Another tab refreshed first: waits for its tokens in the storage. */
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
