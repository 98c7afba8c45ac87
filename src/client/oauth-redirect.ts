/**
 * A visit to a provider's pages and the way back (spec section 5, rule 9): in a popup, or by leaving
 * this page. Ends with the code and the verifier that make a session.
 */
import { Effect, Schema } from "effect"
import { IdentityAlreadyLinked } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import { SignInError, type SignInMode } from "#rpc/oauth/sign-in"
import { OAuthFailed, type PopupClosed, type TimedOut } from "./errors.ts"
import { type ProviderResponse, returnToOpener, takeResponse } from "./oauth-callback.ts"
import { randomText } from "./pkce.ts"
import { openPopup } from "./popup.ts"

export interface ProviderOptions {
  /**
   * `popup` keeps the page; `redirect` leaves it and comes back, where `oauth.result()` has the
   * result. A popup by default, but in the in-app browser of X, which shows none.
   */
  readonly mode?: SignInMode
  /**
   * Where the provider returns to, by default this page; `auth.redirectUrls` must allow it, and it
   * must call `oauth.result()` or `returnToOpener()`. For a popup it is of this page's origin.
   */
  readonly redirectUrl?: string
}

/** What a visit needs to begin. */
export interface AuthorizationRequest {
  readonly provider: Provider
  readonly redirectUrl: string
  readonly mode: SignInMode
  /** For the signed-in player. */
  readonly link: boolean
}

/** The address of the provider; `verifier` stays here. */
export interface Authorization {
  readonly url: string
  readonly verifier: string
}

/** What makes a session. */
export interface SignInCode {
  readonly code: string
  readonly verifier: string
}

/** The in-app browser of X shows no popups. */
const appsWithoutPopups = /Twitter(?:Android| for i)/

/** A visit that came to nothing. */
type SignInFailed = OAuthFailed | IdentityAlreadyLinked

const isSignInError = Schema.is(SignInError)

/** What the service finds out on the way back is the same error as at the exchange. */
const signInFailed = (reason: string): SignInFailed =>
  reason === "identity_already_linked"
    ? new IdentityAlreadyLinked()
    : new OAuthFailed({
        reason: isSignInError(reason) ? reason : "provider_error",
        message: `The sign-in has come to nothing: ${reason}`
      })

const codeOf = ({ code, error }: ProviderResponse, verifier: string | null) =>
  code === null || verifier === null
    ? Effect.fail(signInFailed(error ?? "expired"))
    : Effect.succeed<SignInCode>({ code, verifier })

/** Left for the provider; whoever comes back by the browser's own button has not signed in. */
const redirect = (url: string): Effect.Effect<never, SignInFailed> =>
  Effect.callback((resume) => {
    const shown = ({ persisted }: PageTransitionEvent) => {
      if (persisted) resume(Effect.fail(signInFailed("access_denied")))
    }
    window.addEventListener("pageshow", shown)
    location.assign(url)
    return Effect.sync(() => window.removeEventListener("pageshow", shown))
  })

/** `name` is where the verifier waits in `sessionStorage` while the page is away. */
export const requestCode = <E>(
  name: string,
  begin: (start: AuthorizationRequest) => Effect.Effect<Authorization, E>,
  start: Pick<AuthorizationRequest, "provider" | "link">,
  options: ProviderOptions
): Effect.Effect<SignInCode, E | SignInFailed | PopupClosed | TimedOut> => {
  if (typeof document === "undefined") throw new TypeError("There is no page: use oauth.start().")
  const { mode = appsWithoutPopups.test(navigator.userAgent) ? "redirect" : "popup" } = options
  const redirectUrl = new URL(options.redirectUrl ?? location.href, location.href)
  redirectUrl.hash = ""
  if (mode === "redirect") {
    return Effect.flatMap(
      begin({ ...start, mode, redirectUrl: redirectUrl.href }),
      ({ url, verifier }) => {
        sessionStorage.setItem(name, verifier)
        return redirect(url)
      }
    )
  }
  if (redirectUrl.origin !== location.origin) {
    throw new TypeError(`A popup must return to ${location.origin}, not ${redirectUrl.origin}.`)
  }
  const popup = openPopup(randomText(), redirectUrl)
  return begin({ ...start, mode, redirectUrl: popup.returnTo }).pipe(
    Effect.flatMap(({ url, verifier }) =>
      Effect.flatMap(popup.show(url), (answer) => codeOf(answer, verifier))
    ),
    Effect.ensuring(Effect.sync(popup.close))
  )
}

/**
 * The code that has come back to this page; null when the page was opened otherwise. In a popup it goes
 * to the opener, and nothing comes of it here.
 */
export const receiveCode = (name: string): Effect.Effect<SignInCode | null, SignInFailed> =>
  Effect.suspend(() => {
    if (typeof document === "undefined") return Effect.succeed(null)
    if (returnToOpener()) return Effect.never
    const answer = takeResponse()
    if (answer === null) return Effect.succeed(null)
    const verifier = sessionStorage.getItem(name)
    sessionStorage.removeItem(name)
    return codeOf(answer, verifier)
  })
