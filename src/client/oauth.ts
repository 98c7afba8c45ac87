/**
 * Sign-in with Google, Discord, Apple and X (spec sections 4.1 and 5, rule 9): in a popup or by leaving
 * the page, with PKCE; for apps with a browser of their own, in its two steps; and with the id tokens
 * that devices give.
 */
import { Effect } from "effect"
import type { Provider } from "#rpc/identities"
import type { NativeProvider, NativeRequest, ProviderSession } from "#rpc/oauth/sign-in"
import type { Player } from "#rpc/players"
import type { Http } from "./http.ts"
import {
  type ProviderOptions,
  receiveCode,
  type SignInCode,
  type AuthorizationRequest,
  type Authorization,
  requestCode
} from "./oauth-redirect.ts"
import { makeProofKey } from "./pkce.ts"
import type { Tokens } from "./tokens.ts"

/** Who was signed in, by whom; `linked`: the provider was added to the player that was signed in. */
export interface ProviderSignIn {
  readonly player: Player
  readonly provider: Provider
  readonly linked: boolean
}

/** Where a sign-in outside of this page returns to; whether for the signed-in player. */
export interface StartOptions {
  readonly redirectUrl: string
  readonly link?: boolean
}

export interface OAuth {
  /**
   * Signs in as the player of a provider's account, a new one if there is none, whoever was signed in
   * before. Call it right from a click. Rejects with `popup_blocked`, `popup_closed` or `oauth_failed`.
   *
   * @example
   * button.onclick = async () => show(await client.oauth.signIn("google"))
   */
  signIn(provider: Provider, options?: ProviderOptions): Promise<ProviderSignIn>

  /**
   * Adds a provider's account to the signed-in player: a guest becomes permanent and keeps all its
   * data. Rejects as {@link OAuth.signIn}, and with `identity_already_linked` when it is another player's.
   *
   * @example
   * button.onclick = () => client.oauth.link("discord")
   */
  link(provider: Provider, options?: ProviderOptions): Promise<ProviderSignIn>

  /**
   * The result of a sign-in that has left the page; null when the page was opened otherwise. Call it
   * on every start of the page. In a popup it hands the result over, closes the popup and stays
   * pending.
   *
   * @example
   * const signedIn = await client.oauth.result()
   * const player = signedIn?.player ?? (await client.sessions.ensure())
   */
  result(): Promise<ProviderSignIn | null>

  /**
   * Begins a sign-in outside of this page, say in the system's browser: open `url`, and keep
   * `verifier` for {@link OAuth.exchange}.
   *
   * @example
   * const { url, verifier } = await client.oauth.start("google", { redirectUrl: "mygame://signed-in" })
   */
  start(provider: Provider, options: StartOptions): Promise<Authorization>

  /**
   * Ends it with the `svc_code` that came back in the fragment, within a minute and once. Rejects with
   * `invalid_code`, `identity_already_linked` or `player_banned`.
   *
   * @example
   * const { player } = await client.oauth.exchange(code, verifier)
   */
  exchange(code: string, verifier: string): Promise<ProviderSignIn>

  /**
   * Signs in, or with `link` adds to the signed-in player, with the id token that Apple or Google
   * gave to the app. `nonce` is the raw text whose SHA-256 the app gave them.
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

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

/** `name` is that of the session in the storage. */
export const makeOAuth = (http: Http, tokens: Tokens, run: Run, name: string): OAuth => {
  const pending = `${name}:oauth`

  const authorize = Effect.fnUntraced(function* ({
    link,
    provider,
    ...where
  }: AuthorizationRequest) {
    const { challenge, verifier } = yield* Effect.promise(makeProofKey)
    const started = http.startSignIn(provider, { ...where, challenge })
    const { url } = yield* link ? tokens.authorized(started) : started
    return { url, verifier }
  })

  const exchange = (code: SignInCode) => Effect.map(tokens.signIn(http.exchange(code)), resultOf)

  // Not an effect as a whole: a window opens only in the turn of the click.
  const signIn = async (provider: Provider, options: ProviderOptions, link: boolean) =>
    run(Effect.flatMap(requestCode(pending, authorize, { provider, link }, options), exchange))

  const result = Effect.flatMap(receiveCode(pending), (code) =>
    code === null ? Effect.succeed(null) : exchange(code)
  )
  // The address tells once; whoever asks again on this page gets the same.
  let cachedResult: Promise<ProviderSignIn | null> | undefined

  return {
    signIn: (provider, options = {}) => signIn(provider, options, false),
    link: (provider, options = {}) => signIn(provider, options, true),
    result: () => (cachedResult ??= run(result)),
    start: (provider, { link = false, redirectUrl }) =>
      run(authorize({ provider, redirectUrl, link, mode: "redirect" })),
    exchange: (code, verifier) => run(exchange({ code, verifier })),
    native: (provider, token) => {
      const response = http.nativeSignIn(provider, token)
      const signedIn =
        token.link === true
          ? Effect.flatMap(tokens.authorized(response), (session) =>
              tokens.signIn(Effect.succeed(session))
            )
          : tokens.signIn(response)
      return run(Effect.map(signedIn, resultOf))
    }
  }
}
