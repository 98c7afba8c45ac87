/**
 * Sign-in with Google, Discord, Apple and X. It uses PKCE in a popup or by redirect, two steps for
 * apps that open their own browser, or id tokens of devices.
 */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { Core } from "./core.ts"
import {
  type ProviderOptions,
  receiveCode,
  type SignInCode,
  type AuthorizationRequest,
  type Authorization,
  requestCode
} from "./oauth-redirect.ts"
import { inPath } from "./path-values.ts"
import { makeProofKey } from "./pkce.ts"
import type { KeyHeader } from "./repeats.ts"
import { endOf, spend, pendingRequest } from "./spend.ts"
import type { NativeProvider, NativeRequest, Player, Provider, ProviderSession } from "./wire.ts"

/** The result of a sign-in. `linked`: the identity was added to the player that was signed in. */
export interface ProviderSignIn {
  readonly player: Player
  readonly provider: Provider
  readonly linked: boolean
}

/** `redirectUrl`: where the provider returns. `link`: for the signed-in player. */
export interface StartOptions {
  readonly redirectUrl: string
  readonly link?: boolean
}

/** Sign-in with external providers. */
export interface OAuth {
  /**
   * Signs in as the player of a provider's account, replacing the current session. An unknown account
   * creates a player. Call it in a click handler, or the browser blocks the popup. Rejects with
   * `popup_blocked`, `popup_closed` or `oauth_failed`.
   *
   * @example
   * button.onclick = async () => show(await client.oauth.signIn("google"))
   */
  signIn(provider: Provider, options?: ProviderOptions): Promise<ProviderSignIn>

  /**
   * Adds a provider's account to the signed-in player. A guest becomes permanent and keeps its data.
   * Rejects like {@link OAuth.signIn}, and with `identity_already_linked` if the account is another
   * player's.
   *
   * @example
   * button.onclick = () => client.oauth.link("discord")
   */
  link(provider: Provider, options?: ProviderOptions): Promise<ProviderSignIn>

  /**
   * Returns the result of a redirect sign-in, or of one that an earlier page began and got no response
   * to. Null if the page was opened in another way. Call it on every page load. In a popup it passes
   * the response to the opener, closes the popup and never resolves.
   *
   * @example
   * const signedIn = await client.oauth.result()
   * const player = signedIn?.player ?? (await client.sessions.ensure())
   */
  result(): Promise<ProviderSignIn | null>

  /**
   * Starts a sign-in outside of this page, for example in the system's browser. Open `url`, and keep
   * `verifier` for {@link OAuth.exchange}.
   *
   * @example
   * const { url, verifier } = await client.oauth.start("google", { redirectUrl: "mygame://signed-in" })
   */
  start(provider: Provider, options: StartOptions): Promise<Authorization>

  /**
   * Completes it with the `svc_code` of the fragment. A code works once, for a minute. Rejects with
   * `invalid_code`, `identity_already_linked` or `player_banned`.
   *
   * @example
   * const { player } = await client.oauth.exchange(code, verifier)
   */
  exchange(code: string, verifier: string): Promise<ProviderSignIn>

  /**
   * Signs in with the id token that Apple or Google gave to the app; with `link`, adds the account to the
   * signed-in player. `nonce` is the raw text whose SHA-256 the app gave to the provider. Rejects with
   * `invalid_token` or `identity_already_linked`.
   *
   * @example
   * await client.oauth.native("apple", { idToken, nonce, platform: "ios", link: true })
   */
  native(provider: NativeProvider, token: NativeRequest): Promise<ProviderSignIn>
}

const resultOf = ({ linked, player, provider }: ProviderSession): ProviderSignIn => ({
  player,
  provider,
  linked
})

const nativeSignIn = async (
  core: Core,
  provider: NativeProvider,
  body: NativeRequest
): Promise<ProviderSignIn> => {
  const { http, tokens } = core
  const request = (headers: KeyHeader, token?: string) =>
    http.request("POST /v1/auth/oauth/{provider}/native", {
      params: inPath({ provider }),
      body,
      headers,
      token
    })
  const signedIn = await spend(core, "native", endOf(body.idToken), async (headers) => {
    if (body.link !== true) return tokens.signIn(() => request(headers))
    const session = await authorized(tokens, (token) => request(headers, token))
    return tokens.signIn(() => Promise.resolve(session))
  })
  return resultOf(signedIn)
}

export const oauth: Module<OAuth> = (core) => {
  const { http, name, timers, tokens } = core
  const pending = `${name}:oauth`

  const authorize = async ({
    link,
    provider,
    ...where
  }: AuthorizationRequest): Promise<Authorization> => {
    const { challenge, verifier } = await makeProofKey()
    const started = (token?: string) =>
      http.request("POST /v1/auth/oauth/{provider}/start", {
        params: inPath({ provider }),
        body: { ...where, challenge },
        token
      })
    const { url } = await (link ? authorized(tokens, started) : started())
    return { url, verifier }
  }

  const exchange = async ({ code, verifier }: SignInCode): Promise<ProviderSignIn> => {
    const body = { code, verifier }
    const exchanged = (headers: KeyHeader) =>
      tokens.signIn(() => http.request("POST /v1/auth/oauth/exchange", { body, headers }))
    return resultOf(await spend(core, "exchange", JSON.stringify(body), exchanged))
  }

  /** Completes the sign-in of an earlier page that got no response; null if it cannot be completed. */
  const completed = async (): Promise<ProviderSignIn | null> => {
    const earlier = await pendingRequest(core, "exchange")
    // Only this module writes the value.
    return earlier === undefined
      ? null
      : exchange(JSON.parse(earlier.spent) as SignInCode).catch(() => null)
  }

  // The popup must open in the click handler, so nothing is awaited before `requestCode`.
  const signIn = async (provider: Provider, options: ProviderOptions, link: boolean) => {
    const before = tokens.player?.id
    // The caller has got `popup_closed` and hears of this success by `sessions.onChange`; of an error there
    // is nothing new to say.
    const late = (code: SignInCode) => {
      if (tokens.player?.id === before) exchange(code).catch(() => undefined)
    }
    return exchange(
      await requestCode(pending, authorize, { provider, link }, options, timers, late)
    )
  }

  const result = async () => {
    const code = await receiveCode(pending)
    return code === null ? completed() : exchange(code)
  }
  // The address holds the response once, so later calls on this page return the cached result.
  let cachedResult: Promise<ProviderSignIn | null> | undefined

  return {
    signIn: (provider, options = {}) => signIn(provider, options, false),
    link: (provider, options = {}) => signIn(provider, options, true),
    result: () => (cachedResult ??= result()),
    start: (provider, { link = false, redirectUrl }) =>
      authorize({ provider, redirectUrl, link, mode: "redirect" }),
    exchange: (code, verifier) => exchange({ code, verifier }),
    native: (provider, body) => nativeSignIn(core, provider, body)
  }
}
