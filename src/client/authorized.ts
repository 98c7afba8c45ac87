/**
 * Requests of the signed-in player. They are functions beside {@link Tokens}, so that a bundler leaves out
 * those that a game does not use.
 */
import { isError } from "./errors.ts"
import type { Http } from "./http.ts"
import type { Profile, Tokens } from "./tokens.ts"
import type { Player } from "./wire.ts"

/** The request field that proves possession of this device's session. */
export interface RefreshTokenBody {
  readonly refreshToken: string
}

/** Runs a request with the access token. If the token has expired, refreshes it and retries once. */
export const authorized = async <A>(
  tokens: Tokens,
  request: (token: string) => Promise<A>
): Promise<A> => {
  const token = await tokens.access()
  try {
    return await request(token)
  } catch (error) {
    if (!isError(error, "token_expired")) throw error
    tokens.expire(token)
    return request(await tokens.access())
  }
}

/** The same for a request with the refresh token, which no tab rotates meanwhile. */
export const withRefreshToken = <A>(
  tokens: Tokens,
  request: (token: string, proof: RefreshTokenBody) => Promise<A>
): Promise<A> =>
  authorized(tokens, (token) =>
    tokens.exclusive(() =>
      tokens.locked(async () => request(token, { refreshToken: await tokens.refreshToken() }))
    )
  )

/** Stores a changed player beside the latest tokens, and returns the player. */
export const updatePlayer = async (tokens: Tokens, player: Player): Promise<Player> => {
  await tokens.exclusive(() =>
    tokens.locked(async () => {
      const found = await tokens.load()
      if (found?.player.id === player.id) await tokens.store({ ...found, player })
    })
  )
  return player
}

/** Renames the signed-in player. */
export const rename = async (
  http: Http,
  tokens: Tokens,
  body: Required<Profile>
): Promise<Player> => {
  const { player } = await authorized(tokens, (token) =>
    http.request("PATCH /v1/players/me", { token, body })
  )
  return updatePlayer(tokens, player)
}
