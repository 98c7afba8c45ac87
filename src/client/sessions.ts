/** Sign-in (spec sections 4.1 and 5): guests, the session that stays, and its end. */
import { Effect } from "effect"
import type { Sanction } from "#rpc/appeals"
import type { Player } from "#rpc/players"
import type { Unsubscribe } from "./emitter.ts"
import type { Http, Profile } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface Sessions {
  /** The signed-in player as last heard of; null before `resume`, `ensure` or the first call. */
  readonly player: Player | null

  /**
   * Signs in as a new guest, whoever was signed in before. To keep one guest for a player, call
   * `ensure`.
   *
   * @example
   * const player = await client.sessions.guest({ displayName: "Ada" })
   */
  guest(profile?: Profile): Promise<Player>

  /**
   * Signs in as the player of the last visit. Null when there is none, or when that session has
   * ended.
   *
   * @example
   * const player = await client.sessions.resume()
   * if (player === null) showSignIn()
   */
  resume(): Promise<Player | null>

  /**
   * Signs in as the player of the last visit; as a new guest if there is none, or if that session
   * has ended. A banned player is not replaced: it rejects with `player_banned`, whose `details` say
   * until when, and what the operator has noted.
   *
   * @example
   * const player = await client.sessions.ensure({ displayName: "Ada" })
   */
  ensure(profile?: Profile): Promise<Player>

  /**
   * Signs out. The room's seat is given to the grace; a guest who signs out is lost.
   *
   * @example
   * await client.sessions.logout()
   */
  logout(): Promise<void>

  /**
   * Appeals against the player's ban, once, in 1 to 2000 characters; answers the ban. Also when the ban
   * has signed the player out, until the page is left or somebody else signs in.
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
   * An access token that is valid for another minute at least, for a server of the game's own that
   * verifies players.
   *
   * @example
   * await fetch("/my-server", { headers: { authorization: await client.sessions.accessToken() } })
   */
  accessToken(): Promise<string>

  /**
   * Listens to sign-in, renaming, renewal and sign-out (null), also when the service or another tab
   * has ended the session.
   *
   * @example
   * const stop = client.sessions.onChange((player) => show(player?.displayName ?? "signed out"))
   */
  onChange(listener: (player: Player | null) => void): Unsubscribe
}

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeSessions = (http: Http, tokens: Tokens, run: Run): Sessions => ({
  get player() {
    return tokens.player
  },
  guest: (profile = {}) =>
    run(Effect.map(tokens.signIn(http.guest(profile)), ({ player }) => player)),
  resume: () => run(Effect.map(tokens.resume(), (session) => session?.player ?? null)),
  ensure: (profile = {}) => run(Effect.map(tokens.ensure(profile), ({ player }) => player)),
  logout: () => run(tokens.logout()),
  appeal: (message) => run(Effect.map(tokens.appeal(message), ({ sanction }) => sanction)),
  accessToken: () => run(tokens.access()),
  onChange: (listener) => tokens.changes.on("change", listener)
})
