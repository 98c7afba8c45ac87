/** Sessions of the player: guest sign-in, the stored session and sign-out. */
import { rename } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { ListenerOptions, Unsubscribe } from "./emitter.ts"
import type { Profile } from "./tokens.ts"
import type { Player, Sanction } from "./wire.ts"

export interface Sessions {
  /** The signed-in player as last received; null before `resume`, `ensure` or the first call. */
  readonly player: Player | null

  /**
   * Whether the session outlives the page. False where the browser or the web view offers no storage,
   * which the client may notice only at the first sign-in. Then offer a lasting sign-in to a guest.
   *
   * @example
   * if (!client.sessions.isPersistent) hint.textContent = "Sign in to keep your progress"
   */
  readonly isPersistent: boolean

  /**
   * Signs in as a new guest, replacing the current session. To keep one guest for each player, call
   * `ensure` instead.
   *
   * @example
   * const player = await client.sessions.guest({ displayName: "Ada" })
   */
  guest(profile?: Profile): Promise<Player>

  /**
   * Signs in with the stored session. Null if there is none, or if it has ended.
   *
   * @example
   * const player = await client.sessions.resume()
   * if (player === null) showSignIn()
   */
  resume(): Promise<Player | null>

  /**
   * Signs in with the stored session, or as a new guest if there is none or it has ended. With a
   * `displayName`, a player of another name is renamed: pass one that the player has chosen. A banned
   * player gets no new guest: the call rejects with `player_banned`, whose `details` contain the expiry
   * and the operator's note.
   *
   * @example
   * const player = await client.sessions.ensure({ displayName: nameField.value })
   */
  ensure(profile?: Profile): Promise<Player>

  /**
   * Signs out. The service keeps the player's seat for the grace period. A guest that signs out cannot
   * return.
   *
   * @example
   * await client.sessions.logout()
   */
  logout(): Promise<void>

  /**
   * Appeals against the player's ban, once, with 1 to 2000 characters, and returns the ban. It also
   * works after the ban has signed the player out, until the page closes or another player signs
   * in.
   *
   * @example
   * try {
   *   await client.sessions.ensure()
   * } catch (error) {
   *   if (isError(error, "player_banned")) await client.sessions.appeal(await askWhy(error.details))
   * }
   */
  appeal(message: string): Promise<Sanction>

  /**
   * Returns an access token that is valid for at least another minute, for your own server, which
   * verifies players.
   *
   * @example
   * await fetch("/my-server", { headers: { authorization: await client.sessions.accessToken() } })
   */
  accessToken(): Promise<string>

  /**
   * Adds a listener for sign-in, rename, token refresh and sign-out (null), including those of other tabs
   * and of the service. Returns a function that removes it, as does aborting the option `signal`.
   *
   * @example
   * const stop = client.sessions.onChange((player) => show(player?.displayName ?? "signed out"))
   */
  onChange(listener: (player: Player | null) => void, options?: ListenerOptions): Unsubscribe
}

export const sessions: Module<Sessions> = ({ http, tokens }) => ({
  get player() {
    return tokens.player
  },
  get isPersistent() {
    return tokens.isPersistent
  },
  guest: async (body = {}) =>
    (await tokens.signIn(() => http.request("POST /v1/auth/guest", { body }))).player,
  resume: async () => (await tokens.resume())?.player ?? null,
  ensure: async (profile = {}) => {
    const { player } = await tokens.ensure(profile)
    const { displayName = player.displayName } = profile
    // The service trims names.
    const isNamed = displayName.trim() === player.displayName
    return isNamed ? player : rename(http, tokens, { displayName })
  },
  logout: () =>
    tokens.exclusive(async () => {
      const session = await tokens.locked(() => tokens.signOutAllTabs())
      if (session === undefined) return
      const body = { refreshToken: session.refreshToken }
      await http.request("POST /v1/auth/logout", { body }).catch(() => undefined)
    }),
  appeal: (message) =>
    tokens.exclusive(async () => {
      const body = { refreshToken: await tokens.refreshToken(), message }
      return (await http.request("POST /v1/auth/appeal", { body })).sanction
    }),
  accessToken: () => tokens.access(),
  onChange: (listener, options) => tokens.changes.on("change", listener, options)
})
