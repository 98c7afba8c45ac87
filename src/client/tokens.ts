/**
 * Tokens of the signed-in player. The client renews access tokens before they expire, one refresh
 * at a time. Tabs share one stored session: a writer holds the Web Lock, a refresh rereads the
 * session first, and other tabs follow each change. When the service ends the session, the client
 * signs the player out.
 */
import { refreshRaceSeconds } from "#rpc/client-limits"
import { Emitter } from "./emitter.ts"
import { ClientError, codeOf, isError } from "./errors.ts"
import type { Http } from "./http.ts"
import type { PageListeners } from "./page-listeners.ts"
import { newKey, sendKeyed } from "./repeats.ts"
import { fromResponse, isFresh, type SessionEntry, type StoredSession } from "./stored-session.ts"
import { pause, type Timers } from "./timers.ts"
import { withWebLock } from "./web-lock.ts"
import type { Player, Session } from "./wire.ts"

/** Wait for the tokens of another tab: less than the service's race window. */
const raceMillis = (refreshRaceSeconds - 2) * 1000
const raceStepMillis = 250

/** Errors of a refresh that mean that the session has ended. So does a ban, which the player must see. */
const endedErrors: ReadonlyArray<string | undefined> = ["session_revoked", "invalid_refresh_token"]

export const signedOut = () =>
  new ClientError("signed_out", "Nobody is signed in: call sessions.ensure().")

export interface TokenOptions {
  readonly http: Http
  readonly stored: SessionEntry
  readonly page: PageListeners
  /** Name of the Web Lock. */
  readonly name: string
  readonly autoGuest: boolean
  readonly timers: Timers
}

/** The editable profile of a player. */
export interface Profile {
  /** 1 to 32 characters. */
  readonly displayName?: string
}

/** The ban that ended the session. */
interface Ban {
  /** Error with which every call that needs a player rejects. */
  readonly error: unknown
  /** Refresh token, which still authenticates an appeal. */
  readonly refreshToken: string
}

export class Tokens {
  readonly changes = new Emitter<{ readonly change: Player | null }>()
  readonly #options: TokenOptions
  #queue: Promise<unknown> = Promise.resolve()
  #session: StoredSession | undefined
  #ban: Ban | undefined
  /** Whether the player was signed out; then the client creates no guest implicitly. */
  #isSignedOut = false

  constructor(options: TokenOptions) {
    this.#options = options
    options.page.add(() => options.stored.watch(() => void this.#syncFromStorage()))
  }

  /** Whether the session outlives the page, as far as known. */
  get isPersistent(): boolean {
    return this.#options.stored.isPersistent
  }

  /** The signed-in player, from memory. */
  get player(): Player | null {
    return this.#session?.player ?? null
  }

  /** Signs in with the session that a request returns, replacing the current one. */
  signIn<S extends Session>(request: () => Promise<S>): Promise<S> {
    return this.exclusive(async () => {
      // Without a storage nothing is sent.
      await this.load()
      const session = await request()
      await this.locked(() => this.#save(session))
      return session
    })
  }

  /** Returns the stored session if it is still valid. */
  resume(): Promise<StoredSession | undefined> {
    return this.exclusive(() => this.#resumeIfValid())
  }

  /** Returns the stored session, or that of a new guest. */
  ensure(profile: Profile): Promise<StoredSession> {
    return this.exclusive(async () => (await this.#resumeIfValid()) ?? this.#newGuest(profile))
  }

  /** Returns a fresh access token. */
  access(): Promise<string> {
    return this.exclusive(async () => (await this.#resumeOrCreate()).accessToken)
  }

  /** Marks an access token that the service refused as expired. */
  expire(accessToken: string): void {
    if (this.#session?.accessToken !== accessToken) return
    this.#session = { ...this.#session, expiresAt: 0 }
  }

  /** The latest refresh token of the session, or of the ban that ended it. */
  async refreshToken(): Promise<string> {
    const owner = (await this.load()) ?? this.#session ?? this.#ban
    if (owner === undefined) throw signedOut()
    return owner.refreshToken
  }

  /** Runs one task after the other. */
  exclusive<A>(task: () => Promise<A>): Promise<A> {
    // Another tab may have changed the session while nobody listened.
    if (this.#options.page.restore()) void this.#syncFromStorage()
    const result = this.#queue.then(task)
    this.#queue = result.catch(() => undefined)
    return result
  }

  /** Runs a task that reads or writes the stored session, while no other tab does. */
  locked<A>(task: () => Promise<A>): Promise<A> {
    return withWebLock(this.#options.name, this.#options.timers, task)
  }

  /** Adopts the player, tokens or sign-out that another tab stored. */
  #syncFromStorage(): Promise<void> {
    return this.exclusive(async () => {
      const found = await this.load()
      const [old, now] = [this.#session, found].map((session) =>
        JSON.stringify([session?.accessToken, session?.player])
      )
      if (old === now) return
      if (found === undefined) this.#clear()
      else this.#adopt(found)
    })
  }

  /** The session that the tabs share. */
  load(): Promise<StoredSession | undefined> {
    return this.#options.stored.read()
  }

  #isFresh(session: StoredSession): boolean {
    return isFresh(session, this.#options.timers.now())
  }

  #adopt(session: StoredSession): StoredSession {
    this.#session = session
    this.#ban = undefined
    this.#isSignedOut = false
    this.changes.emit("change", session.player)
    return session
  }

  #save(response: Session): Promise<StoredSession> {
    return this.store(fromResponse(response, this.#options.timers.now()))
  }

  /** Stores a session and uses it. Call it under the lock. */
  async store(session: StoredSession): Promise<StoredSession> {
    await this.#options.stored.write(session)
    return this.#adopt(session)
  }

  /** Clears the session in memory. */
  #clear(): void {
    const was = this.#session
    this.#session = this.#ban = undefined
    this.#isSignedOut = true
    if (was !== undefined) this.changes.emit("change", null)
  }

  /** Signs out all tabs and returns their session. Call it under the lock. */
  async signOutAllTabs(): Promise<StoredSession | undefined> {
    const session = (await this.load()) ?? this.#session
    await this.#options.stored.write(undefined)
    this.#clear()
    return session
  }

  /** Creates a guest, unless another tab was faster. */
  #newGuest(profile: Profile): Promise<StoredSession> {
    const { http } = this.#options
    return this.locked(async () => {
      const found = await this.#loadFresh()
      if (found !== undefined) return found
      return this.#save(await http.request("POST /v1/auth/guest", { body: profile }))
    })
  }

  /** Returns the stored session, or that of a new guest if `autoGuest` allows it. */
  async #resumeOrCreate(): Promise<StoredSession> {
    const session = await this.#resume()
    if (session !== undefined) return session
    // After a sign-out, a new guest would hide that the old player is signed out.
    if (!this.#options.autoGuest || this.#isSignedOut) throw this.#ban?.error ?? signedOut()
    return this.#newGuest({})
  }

  /** Maps an ended session to undefined. */
  async #resumeIfValid(): Promise<StoredSession | undefined> {
    try {
      return await this.#resume()
    } catch (error) {
      if (endedErrors.includes(codeOf(error))) return undefined
      throw error
    }
  }

  /** Returns the stored session with a fresh access token, or undefined. */
  async #resume(): Promise<StoredSession | undefined> {
    if (this.#session === undefined) {
      const found = this.#isSignedOut ? undefined : await this.load()
      if (found === undefined) return undefined
      this.#adopt(found)
    }
    const session = this.#session
    return session !== undefined && this.#isFresh(session)
      ? session
      : this.locked(async () => {
          const renewed = await this.#loadFresh()
          // Another tab has signed out.
          if (renewed === undefined) this.#clear()
          return renewed
        })
  }

  /** Loads the shared session and refreshes it if due. Call it under the lock. */
  async #loadFresh(): Promise<StoredSession | undefined> {
    const found = await this.load()
    if (found === undefined) return undefined
    const others = found.accessToken !== this.#session?.accessToken
    return others && this.#isFresh(found) ? this.#adopt(found) : this.#refresh(found)
  }

  /** Refreshes under a key that it stores first, so that a lost response is no lost session. */
  async #refresh(found: StoredSession): Promise<StoredSession> {
    const { http, stored } = this.#options
    const body = { refreshToken: found.refreshToken }
    const repeatKey = found.repeatKey ?? newKey()
    const used = repeatKey === undefined ? found : { ...found, repeatKey }
    if (repeatKey !== found.repeatKey) await stored.write(used)
    try {
      const response = await sendKeyed(repeatKey, (headers) =>
        http.request("POST /v1/auth/refresh", { body, headers })
      )
      return await this.#save(response)
    } catch (error) {
      if (isError(error, "refresh_race")) return this.#awaitOtherTab(used, error)
      const isBan = isError(error, "player_banned")
      if (isBan || endedErrors.includes(codeOf(error))) await this.signOutAllTabs()
      if (isBan) this.#ban = { error, refreshToken: used.refreshToken }
      throw error
    }
  }

  /** Waits for the tokens of another tab in the storage, or for its key, after it refreshed first. */
  async #awaitOtherTab(used: StoredSession, race: unknown): Promise<StoredSession> {
    for (let waited = 0; ; waited += raceStepMillis) {
      const found = await this.load()
      if (found !== undefined && found.refreshToken !== used.refreshToken) return this.#adopt(found)
      if (found?.repeatKey !== undefined && found.repeatKey !== used.repeatKey)
        return this.#refresh(found)
      if (waited >= raceMillis) throw race
      await pause(this.#options.timers, raceStepMillis)
    }
  }
}
