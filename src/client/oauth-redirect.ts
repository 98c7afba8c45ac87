/**
 * The browser part of an OAuth sign-in, in a popup or by a redirect of the page. Returns the code and
 * verifier for the exchange.
 */
import { Effect, Schema } from "effect"
import { IdentityAlreadyLinked } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import { SignInError, type SignInMode } from "#rpc/oauth/sign-in"
import { OAuthFailed, type PopupClosed, type TimedOut } from "./errors.ts"
import { type ProviderResponse, returnToOpener, takeResponse } from "./oauth-callback.ts"
import { randomText } from "./pkce.ts"
import { openPopup } from "./popup.ts"

/** How the browser shows the provider's pages. */
export interface ProviderOptions {
  /**
   * `popup` keeps the page. `redirect` leaves it; after the return, `oauth.result()` has the result.
   * Default: `popup`, except in the in-app browser of X, which has no popups.
   */
  readonly mode?: SignInMode
  /**
   * Where the provider returns; default: this page. `auth.redirectUrls` must allow it, and it must call
   * `oauth.result()` or `returnToOpener()`. For a popup it must have this page's origin.
   */
  readonly redirectUrl?: string
}

/** The input of an authorization. */
export interface AuthorizationRequest {
  readonly provider: Provider
  readonly redirectUrl: string
  readonly mode: SignInMode
  /** Whether to link the identity to the signed-in player. */
  readonly link: boolean
}

/** The provider's URL, and the PKCE verifier, which stays on this device. */
export interface Authorization {
  readonly url: string
  readonly verifier: string
}

/** The input of the exchange. */
export interface SignInCode {
  readonly code: string
  readonly verifier: string
}

/** User agents of in-app browsers that show no popups: X on Android and iOS. */
const appsWithoutPopups = /Twitter(?:Android| for i)/

/** How the browser part of a sign-in fails. */
type SignInFailed = OAuthFailed | IdentityAlreadyLinked

const isSignInError = Schema.is(SignInError)

/** Errors that the callback finds are the same as those of the exchange. */
const signInFailed = (reason: string): SignInFailed =>
  reason === "identity_already_linked"
    ? new IdentityAlreadyLinked()
    : new OAuthFailed({
        reason: isSignInError(reason) ? reason : "provider_error",
        message: `Sign-in failed: ${reason}`
      })

const codeOf = ({ code, error }: ProviderResponse, verifier: string | null) =>
  code === null || verifier === null
    ? Effect.fail(signInFailed(error ?? "expired"))
    : Effect.succeed<SignInCode>({ code, verifier })

/** Leaves for the provider. A player who returns with the back button has not signed in. */
const redirect = (url: string): Effect.Effect<never, SignInFailed> =>
  Effect.callback((resume) => {
    const shown = ({ persisted }: PageTransitionEvent) => {
      if (persisted) resume(Effect.fail(signInFailed("access_denied")))
    }
    window.addEventListener("pageshow", shown)
    location.assign(url)
    return Effect.sync(() => window.removeEventListener("pageshow", shown))
  })

/**
 * Sends the player to the provider. `name` is the key of the verifier in `sessionStorage` during a
 * redirect.
 */
export const requestCode = <E>(
  name: string,
  begin: (start: AuthorizationRequest) => Effect.Effect<Authorization, E>,
  start: Pick<AuthorizationRequest, "provider" | "link">,
  options: ProviderOptions
): Effect.Effect<SignInCode, E | SignInFailed | PopupClosed | TimedOut> => {
  if (typeof document === "undefined")
    throw new TypeError("This needs a browser page: use oauth.start() instead.")
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
 * Returns the code that came back to this page, or null. In a popup it passes the response to the
 * opener and never returns.
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
